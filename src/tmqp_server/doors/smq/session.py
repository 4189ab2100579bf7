"""One connection of Simple MQ: lines into commands, deliveries and statistics into lines.

Theory of operation.  With the first line, the session asks the broker to accept the client; further
lines wait for the answer.  Consecutive messages to one queue are one push.  A consumer's messages
are remembered in the order in which they were sent, because ``D`` counts them instead of naming
them.  A message waits for room in its queue, and the client is not read meanwhile: nothing is lost
or overtaken, and back-pressure stops the producer.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_BUSY, RESULT_LIMIT_EXCEEDED, RESULT_OK
from tmqp.greetings import FirstBytes
from tmqp_server.doors.answers import PlainAnswers, RunChoice
from tmqp_server.doors.bodies import bytes_around
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.doors.port import SYNTAX
from tmqp_server.doors.smq.context import SmqContext
from tmqp_server.doors.smq.message import DOOR, QUEUE, SmqMessage, SmqRun
from tmqp_server.doors.waiting import NOTHING, WaitingSession
from tmqp_server.engine.commands import (
    AcknowledgeRun,
    Command,
    Connect,
    CreateQueue,
    DescribeQueue,
    Join,
    PushRun,
)
from tmqp_server.engine.effects import Deliver, DeliverRun, Effect, Lapsed, Left, Reply
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_wires.smq import LineDecoder
from tmqp_wires.smq.codec import UNKNOWN_TYPE
from tmqp_wires.smq.events import Consume, Done, Event, Publish, Stats, Unknown, Violation

__all__ = ["SmqSession"]

#: Codes that say that there is no room.
_FULL: Final = (RESULT_LIMIT_EXCEEDED, RESULT_BUSY)


@final
class _QueueCounts:
    """A request for statistics: the counts so far, and how many answers are missing."""

    __slots__ = ("counts", "missing", "slot")

    def __init__(self, slot: Slot, missing: int) -> None:
        self.slot = slot
        self.missing = missing
        self.counts: dict[bytes, int] = {}


@final
class _AskedQueue:
    """The token of the command that describes one queue."""

    __slots__ = ("of", "queue")

    def __init__(self, of: _QueueCounts, queue: bytes) -> None:
        self.of = of
        self.queue = queue


@final
class SmqSession(WaitingSession[Event]):
    """One connection.

    :param context: what all connections share.
    """

    def __init__(self, context: SmqContext, number: int) -> None:
        super().__init__(number, DOOR, context.new_id, context.limits.max_early_bytes)
        self._context = context
        self._decoder = LineDecoder(context.limits.max_line_bytes)
        self._first = FirstBytes()
        self._answers = OrderedAnswers()
        self._out: list[bytes] = []
        self._out_bytes = 0
        #: Of each queue that is consumed, the ids that are not done, oldest first.
        self._in_hand: dict[str, deque[str]] = {}
        self._spellings: dict[str, str] = {}
        #: The bytes of stored messages besides id and body, by channel that was published to.
        self._around: dict[str, int] = {}
        self._runs = RunChoice()

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self.closed:
            return NOTHING
        self._first.take(data)
        return self.take(self._decoder.receive(data, now), now)

    def introduction(self) -> Connect:
        """Ask the broker to accept the client, and to report lapsed deliveries."""
        asked = super().introduction()
        asked.hears_lapses = True
        return asked

    def text_bytes_of(self, event: Event) -> int:
        """The size of the messages' bodies."""
        return sum(map(len, event.bodies)) if isinstance(event, Publish) else 0

    def forget_input(self) -> None:
        """Drop an incomplete line."""
        self._decoder.forget()

    def commands_of(self, events: list[Event], now: float) -> Sequence[Command]:
        """The commands for lines."""
        commands: list[Command] = []
        singly = self._runs.begin_chunk()
        for event in events:
            if isinstance(event, Publish):
                self._publish(event, singly, commands)
            elif isinstance(event, Consume):
                self._consume(event.queue, commands)
            elif isinstance(event, Done):
                self._done(event, commands)
            elif isinstance(event, Stats):
                self._ask_statistics(commands)
            elif isinstance(event, Unknown):
                self._answers.finish(self._answers.open(), UNKNOWN_TYPE)
            else:
                commands.extend(self.end(self._fault(event)))
                break
        self._note()
        return commands

    def _fault(self, event: Violation) -> str:
        self.violation = SYNTAX
        return f"{self._first.sent()}: {event.text}"

    def _channel(self, queue: bytes) -> str:
        """The channel of a queue, which is noted as used."""
        context = self._context
        channel = context.names.exact_channel(queue)
        context.know(channel, queue)
        return channel

    def _creation(self, channel: str) -> Command:
        return CreateQueue(self._number, None, channel, QUEUE, self._context.changes())

    def _publish(self, event: Publish, singly: bool, commands: list[Command]) -> None:
        """Push consecutive messages to one queue."""
        context, number = self._context, self._number
        channel = self._channel(event.queue)
        around = self._around.get(channel)
        if around is None:
            if len(self._around) >= context.limits.max_queues:
                self._around.clear()
            around = self._around[channel] = bytes_around(self._client_id, channel)
            commands.append(self._creation(channel))
        bodies = event.bodies
        count = len(bodies)
        run = SmqRun(context.ids.several(count), channel, bodies, around, context.extras)
        if count == 1 or singly:
            commands += run.singly(number)
            return
        size, largest, notes = run.size(), run.largest(), self._runs
        commands.append(
            PushRun(number, channel, QUEUE, False, False, count, size, largest, run, notes)
        )

    def _consume(self, queue: bytes, commands: list[Command]) -> None:
        channel = self._channel(queue)
        commands.append(self._creation(channel))
        if channel not in self._in_hand:
            self._in_hand[channel] = deque()
            commands.append(Join(self._number, channel, channel, terms=self._context.terms()))

    def _done(self, event: Done, commands: list[Command]) -> None:
        """Acknowledge the oldest deliveries of the named queue, or of all queues if the client does
        not consume it."""
        named = self._context.names.exact_channel(event.queue)
        count = event.count
        for channel in [named] if named in self._in_hand else list(self._in_hand):
            ids = self._in_hand[channel]
            done = [ids.popleft() for _ in range(min(count, len(ids)))]
            count -= len(done)
            if done:
                answers, notes = PlainAnswers(), self._runs
                commands.append(AcknowledgeRun(self._number, channel, QUEUE, done, answers, notes))

    def _ask_statistics(self, commands: list[Command]) -> None:
        known = self._context.known
        question = _QueueCounts(self._answers.open(), len(known))
        if not known:
            self._answers.finish(question.slot, b"{}\n")
        for channel, queue in known.items():
            request = _AskedQueue(question, queue)
            commands.append(DescribeQueue(self._number, request, channel, QUEUE))

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if self.closed:
            return NOTHING
        decided = self.decided(effect, now)
        if decided is not None:
            return decided
        if isinstance(effect, Reply):
            return self._replied(effect)
        if isinstance(effect, Left):
            # Its queue was removed; the client may ask for it again.
            self._in_hand.pop(self._spelt(effect.channel), None)
        if isinstance(effect, Lapsed):
            self._forget(effect)
        return NOTHING

    def _forget(self, effect: Lapsed) -> None:
        """Forget a lapsed delivery, so that ``D`` does not count it."""
        ids = self._in_hand.get(self._spelt(effect.channel))
        if not ids:
            return
        message_id = effect.message_id
        if ids[-1] == message_id:
            ids.pop()  # what was sent last is the first that is disposed of
        elif message_id in ids:
            ids.remove(message_id)

    def _spelt(self, channel: str) -> str:
        """The channel as this session names it."""
        found = self._spellings.get(channel)
        if found is None:
            names = self._context.names
            found = self._spellings[channel] = names.exact_channel(names.foreign_name(channel))
        return found

    def _replied(self, effect: Reply) -> Sequence[Command]:
        request = effect.request
        if isinstance(request, SmqMessage):
            if effect.code in _FULL:
                return self.end(f"there was no room for a message ({len(request.body)} bytes)")
        elif isinstance(request, _AskedQueue):
            self._count(request, effect)
        elif isinstance(request, str) and effect.code != RESULT_OK:
            self._in_hand.pop(request, None)  # a join that was refused
        return NOTHING

    def _count(self, request: _AskedQueue, effect: Reply) -> None:
        """Add the count of one queue: its messages that wait, are deferred or in flight.  When all
        counts are known, send the answer."""
        question = request.of
        snapshot = effect.body
        if isinstance(snapshot, QueueSnapshot):
            question.counts[request.queue] = (
                snapshot.messages
                + snapshot.priority_messages
                + snapshot.deferred
                + snapshot.in_flight
            )
        question.missing -= 1
        if question.missing:
            return
        counts = {name.decode("utf-8", "replace"): n for name, n in question.counts.items()}
        data = json.dumps(counts, separators=(",", ":"), ensure_ascii=False).encode()
        self._answers.finish(question.slot, data + b"\n")
        self._note()

    # -- bytes out ------------------------------------------------------------------------------

    def deliver(self, data: bytes) -> None:
        """Queue a line."""
        self._out.append(data)
        self._out_bytes += len(data)
        self._note()

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery, and remember it."""
        ids = self._in_hand.get(self._spelt(effect.channel))
        if ids is not None and effect.wants_acknowledge:
            ids.append(effect.message.message_id)
        self.deliver(shared)

    def deliver_own_run(self, effect: DeliverRun, shared: bytes, number: int) -> None:
        """Queue the deliveries of a run, and remember them."""
        ids = self._in_hand.get(self._spelt(effect.channel))
        if ids is not None and effect.wants_acknowledge:
            ids.extend(effect.message_ids())
        self.deliver(shared)

    def _note(self) -> None:
        self.outbound_bytes = self._out_bytes + self._answers.ready_bytes

    def data_to_send(self) -> bytes:
        """Everything queued."""
        return self.next_to_send() + self.next_to_send()

    def next_to_send(self) -> bytes:
        """All deliveries in one piece, then in the next call the answers: a client parses what it
        reads at once as one JSON value (facts B2)."""
        if self._out:
            data = b"".join(self._out)
            self._out = []
            self._out_bytes = 0
        else:
            data = self._answers.take()
        self._note()
        return data

    def held_bytes(self) -> int:
        """Bytes of an incomplete line, and of input that waits for the decision about the
        client."""
        return self._decoder.held_bytes + super().held_bytes()

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When an unended line may count as complete."""
        return None if self.closed else self._decoder.next_deadline()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Let an unended line count as complete."""
        return NOTHING if self.closed else self.take(self._decoder.on_deadline(now), now)
