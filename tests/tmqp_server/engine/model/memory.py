"""How the model counts memory: every message, and what everything else is charged (F64)."""

from __future__ import annotations

from typing import cast

from tests.tmqp_server.engine.model.desk import Desk
from tests.tmqp_server.engine.model.things import Asked, Channel, Line
from tmqp_server.engine import books
from tmqp_server.engine.options import ChannelOptions, QueueOptions

__all__ = ["OVERHEAD", "Counting", "channel_cost", "line_cost"]

#: What each message takes beyond its own bytes.
OVERHEAD = 512


def _queue_options(options: dict[str, object]) -> QueueOptions:
    """The options that matter for memory."""
    tag = cast("str | None", options["tag"])
    return QueueOptions(tag=tag, dead_letter=cast("tuple[str, int] | None", options["dead_letter"]))


def line_cost(options: dict[str, object]) -> int:
    """What a queue with these options takes."""
    return books.queue_bytes(_queue_options(options))


def channel_cost(name: str, options: dict[str, object]) -> int:
    """What a channel with these options takes."""
    allowed = cast("tuple[int, ...] | None", options.get("allowed_queues"))
    mine = ChannelOptions(
        allowed_queues=allowed,
        lifetime=cast("str", options["lifetime"]),
        idle_timeout_ms=cast("int", options["idle_timeout_ms"]),
        queue=_queue_options(options),
    )
    return books.channel_bytes(name, mine)


class Counting(Desk):
    """Counts."""

    #: What a message takes that is on its way to the dead letters.
    moving = 0
    #: Pulls whose queue was removed; they end as soon as their client can be told.
    orphans: list[Asked]

    def router_state(self) -> int:
        """What routers and bindings take."""
        raise NotImplementedError

    def state(self) -> int:
        """What all but messages takes."""
        total = self.router_state() + len(self.orphans) * books.PULL_BYTES
        for client in self.clients.values():
            total += books.session_bytes(client.client_id, client.name, client.kind, None)
            for question in client.questions:
                total += books.question_bytes(question.message_id, question.asked)
        for spellings in self.listeners.values():
            total += sum([books.listening_bytes(each) for each in spellings.values()])
        gone = {}
        for channel in self.channels.values():
            total += self._of_channel(channel)
            for line in channel.queues.values():
                total += self._of_line(line)
                for letter in line.flights:
                    if letter.sent_to > 1:
                        total += books.holders_bytes(letter.sent_to)
                    gone.update({each.number: each for each in letter.holders if not each.alive})
        for ended in gone.values():
            total += books.ENDED_SESSION_BYTES + books.text_bytes(ended.client_id)
        return total

    def _of_channel(self, channel: Channel) -> int:
        members = len(channel.members) * books.SUBSCRIPTION_BYTES
        return channel_cost(channel.name, channel.options) + members

    def _of_line(self, line: Line) -> int:
        waiting = len(line.pulls) * books.PULL_BYTES + len(line.deferred) * books.DEFERRAL_BYTES
        return line_cost(line.options) + waiting

    def memory(self) -> int:
        """What is taken in all."""
        letters = [letter.size + OVERHEAD for line in self.lines() for letter in line.live()]
        return sum(letters) + self.moving + self.state()

    def has_room(self, size: int) -> bool:
        """Whether something of that size can be created."""
        return self.memory() + size <= self.settings.total_bytes

    def has_room_for_client(self, size: int) -> bool:
        """The same for connections, memberships and pulls, which have a sixteenth more, and at
        least 256 KiB."""
        most = self.settings.total_bytes
        return self.memory() + size <= most + max(most // 16, 262_144)
