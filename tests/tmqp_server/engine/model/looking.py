"""How the model looks into a queue: what is there, in the order of coming, and nothing moves."""

from __future__ import annotations

from tests.tmqp_server.engine.model.operating import PLACE_BYTES, Operating
from tests.tmqp_server.engine.model.things import Client, Letter, Line, Word
from tmqp_server.engine import books
from tmqp_server.engine.commands import Browse
from tmqp_server.engine.model.snapshots import (
    BROWSED_DEFERRED,
    BROWSED_IN_FLIGHT,
    BROWSED_WAITING,
)

__all__ = ["Looking"]


def states_of(line: Line) -> list[tuple[Letter, int, float | None]]:
    """What is in a queue, with its state and when it is due, by the order of coming."""
    found = [(letter, BROWSED_WAITING, None) for letter in line.waiting()]
    flights = [(letter, BROWSED_IN_FLIGHT, None) for letter in line.flights]
    deferred = [(letter, BROWSED_DEFERRED, due) for due, letter in line.deferred]
    return sorted([*found, *flights, *deferred], key=lambda each: each[0].number)


class Looking(Operating):
    """Serves those who look into queues."""

    #: How many messages have lower sequences than the one from which is looked: their numbers are
    #: the engine's affair.
    skipped = 0

    def browse(self, client: Client, command: Browse) -> None:
        """Show a portion of a queue."""
        line = self.line(command.channel, command.queue_id)
        if line is None:
            self.reply(client, command.request, 404)
            return
        channel = line.channel
        if channel.options["owner_only"] and channel.owner is not client:
            self.reply(client, command.request, 403)
            return
        channel.used = True
        if not self.has_room(books.BROWSE_BYTES + PLACE_BYTES * len(line.live())):
            self.reply(client, command.request, 503)
            return
        shown: list[Word] = []
        left = command.max_bytes
        for letter, state, due in states_of(line)[self.skipped :]:
            if not state & command.states:
                continue
            if command.message_id and command.message_id != letter.message_id:
                continue
            left -= letter.size
            full = len(shown) == command.limit and command.limit
            if full or (shown and command.max_bytes and left < 0):
                break
            marks = (letter.high, letter.wants, bool(letter.ticket))
            counts = (letter.attempts, letter.put_backs)
            source = letter.producer.client_id
            times = (letter.expires, due)
            shown.append((letter.message_id, source, letter.size, *marks, state, *counts, *times))
        body = (line.is_on("hide_client_names"), tuple(shown))
        self.reply(client, command.request, 0, body)
