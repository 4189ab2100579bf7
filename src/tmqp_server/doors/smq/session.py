"""One connection of Simple MQ: lines into commands, deliveries and statistics into lines.

Theory of operation.  The first line asks the broker to let the client in; what comes meanwhile
waits.  Messages to one queue in a row are one push.  A consumer's messages are remembered in the
order in which they were sent, for ``D`` counts them instead of naming them.  What a full queue
does not take is offered again, and the client is not read meanwhile: nothing is lost, and its
producer waits in its own kernel.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_BUSY, RESULT_LIMIT_EXCEEDED, RESULT_OK
from tmqp.greetings import name_greeting
from tmqp_server.doors.answers import PlainAnswers
from tmqp_server.doors.bodies import bytes_around
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.doors.smq.context import SmqContext
from tmqp_server.doors.smq.message import DOOR, QUEUE, SmqMessage, SmqRun
from tmqp_server.doors.waiting import NOTHING, WaitingSession
from tmqp_server.engine.commands import (
    AcknowledgeRun,
    Command,
    CreateQueue,
    DescribeQueue,
    Join,
    PushRun,
    RunNotes,
)
from tmqp_server.engine.effects import Deliver, Effect, Left, Reply
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_wires.smq import LineDecoder
from tmqp_wires.smq.codec import UNKNOWN_TYPE
from tmqp_wires.smq.events import Consume, Done, Event, Publish, Stats, Unknown, Violation

__all__ = ["SmqSession"]

_NEVER: Final = float("inf")
_MS: Final = 1000.0
#: Codes that say that there is no room now.
_FULL: Final = (RESULT_LIMIT_EXCEEDED, RESULT_BUSY)
_WHO_HELLO: Final = 8


@final
class _QueueCounts:
    """One question about the queues: what is known so far, and how many answers are missing."""

    __slots__ = ("counts", "missing", "slot")

    def __init__(self, slot: Slot, missing: int) -> None:
        self.slot = slot
        self.missing = missing
        self.counts: dict[bytes, int] = {}


@final
class _AskedQueue:
    """What a question about one queue is about: the request of its command."""

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
        self._first = b""
        self._answers = OrderedAnswers()
        self._out: list[bytes] = []
        self._out_bytes = 0
        #: Of each queue that is consumed, the ids that are not done, oldest first.
        self._in_hand: dict[str, deque[str]] = {}
        self._spellings: dict[str, str] = {}
        #: The channel that was published to last, and what is kept of a message there beside its
        #: id and its body.
        self._measured = ""
        self._around = 0
        self._refused: list[SmqMessage] = []
        self._retry_due = _NEVER
        self._full_since = _NEVER
        self._notes = RunNotes()

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self.closed:
            return NOTHING
        if len(self._first) < _WHO_HELLO:
            self._first += data[:32]
        return self.take(self._decoder.receive(data, now), now)

    def text_bytes_of(self, event: Event) -> int:
        """The body of a message."""
        return len(event.body) if isinstance(event, Publish) else 0

    def forget_input(self) -> None:
        """Half a line."""
        self._decoder.forget()

    def last_commands(self) -> list[Command]:
        """What found no room may find some now, for the last time."""
        refused = self._refused
        self._refused = []
        self._retry_due = _NEVER
        return [each.push(self._number) for each in refused]

    def commands_of(self, events: list[Event], now: float) -> Sequence[Command]:
        """What lines ask for."""
        commands: list[Command] = []
        at = 0
        while at < len(events) and not self.closed:
            event = events[at]
            at += 1
            if isinstance(event, Publish):
                at = self._publish(event, events, at, commands)
            elif isinstance(event, Consume):
                self._consume(event.queue, commands)
            elif isinstance(event, Done):
                self._done(event, commands)
            elif isinstance(event, Stats):
                self._ask_statistics(commands)
            elif isinstance(event, Unknown):
                self._answers.finish(self._answers.open(), UNKNOWN_TYPE)
            else:
                assert isinstance(event, Violation)
                commands.extend(self.end(self._fault(event)))
        self._note()
        return commands

    def _fault(self, event: Violation) -> str:
        return f"the peer sent {name_greeting(self._first)}: {event.text}"

    def _channel(self, queue: bytes, commands: list[Command]) -> str:
        """The channel of a queue, which is made if there is none."""
        context = self._context
        channel = context.names.exact_channel(queue)
        context.know(channel, queue)
        commands.append(CreateQueue(self._number, None, channel, QUEUE, context.changes()))
        return channel

    def _publish(
        self, first: Publish, events: list[Event], at: int, commands: list[Command]
    ) -> int:
        """Messages to one queue in a row; returns where the next event is."""
        channel = self._channel(first.queue, commands)
        new_id = self._context.new_id
        if channel != self._measured:
            self._measured = channel
            self._around = bytes_around(self._client_id, channel)
        around = self._around
        messages = [SmqMessage(new_id(), channel, first.body + b"\n", around)]
        while at < len(events):
            event = events[at]
            if not isinstance(event, Publish) or event.queue != first.queue:
                break
            messages.append(SmqMessage(new_id(), channel, event.body + b"\n", around))
            at += 1
        if self._refused:
            # Behind what waits for room, or the order would change.
            self._refused += messages
            return at
        if len(messages) == 1:
            commands.append(messages[0].push(self._number))
            return at
        run = SmqRun(messages)
        command = PushRun(
            self._number,
            channel,
            QUEUE,
            False,
            False,
            len(messages),
            run.size(),
            run.largest(),
            run,
            self._notes,
        )
        commands.append(command)
        return at

    def _consume(self, queue: bytes, commands: list[Command]) -> None:
        channel = self._channel(queue, commands)
        if channel not in self._in_hand:
            self._in_hand[channel] = deque()
            commands.append(Join(self._number, channel, channel, terms=self._context.terms()))

    def _done(self, event: Done, commands: list[Command]) -> None:
        """The oldest in hand of that queue; of all, if it is not consumed here."""
        named = self._context.names.exact_channel(event.queue)
        count = event.count
        for channel in [named] if named in self._in_hand else list(self._in_hand):
            ids = self._in_hand[channel]
            done = [ids.popleft() for _ in range(min(count, len(ids)))]
            count -= len(done)
            if done:
                commands.append(
                    AcknowledgeRun(self._number, channel, QUEUE, done, PlainAnswers(), self._notes)
                )

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
            self._replied(effect, now)
        elif isinstance(effect, Left):
            # Its queue was removed; the client may ask for it again.
            self._in_hand.pop(self._spelt(effect.channel), None)
        return NOTHING

    def _spelt(self, channel: str) -> str:
        """The channel as this session names it."""
        found = self._spellings.get(channel)
        if found is None:
            names = self._context.names
            found = self._spellings[channel] = names.exact_channel(names.foreign_name(channel))
        return found

    def _replied(self, effect: Reply, now: float) -> None:
        request = effect.request
        if isinstance(request, SmqMessage):
            if effect.code in _FULL:
                self._keep(request, now)
        elif isinstance(request, _AskedQueue):
            self._count(request, effect)
        elif isinstance(request, str) and effect.code != RESULT_OK:
            self._in_hand.pop(request, None)  # a join that was refused

    def _keep(self, message: SmqMessage, now: float) -> None:
        """Keep a message that found no room, and stop reading."""
        if self.reads:
            self._full_since = now
        self._refused.append(message)
        self.reads = False
        self.hurried = True
        self._retry_due = now + self._context.limits.retry_ms / _MS

    def _count(self, request: _AskedQueue, effect: Reply) -> None:
        """Waiting and in flight of one queue; the answer goes out alone when all are known."""
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

    def _note(self) -> None:
        self.outbound_bytes = self._out_bytes + self._answers.ready_bytes

    def data_to_send(self) -> bytes:
        """Everything queued."""
        return self.next_to_send() + self.next_to_send()

    def next_to_send(self) -> bytes:
        """Deliveries in one piece, then the answers: a client takes what it reads at once for one
        value of JSON (facts B2)."""
        if self._out:
            data = b"".join(self._out)
            self._out = []
            self._out_bytes = 0
        else:
            data = self._answers.take()
        self._note()
        return data

    def held_bytes(self) -> int:
        """Half a line, and what waits for the decision about the client or for room."""
        held = self._decoder.held_bytes + super().held_bytes()
        for message in self._refused:
            held += message.size
        return held

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When an unended line may count, or refused messages are offered again."""
        due = self._retry_due
        silent = self._decoder.next_deadline()
        if silent is not None and silent < due:
            due = silent
        return None if due == _NEVER or self.closed else due

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Take an unended line for whole; offer refused messages again."""
        if self.closed:
            return NOTHING
        commands = list(self.take(self._decoder.on_deadline(now), now))
        if now >= self._retry_due:
            commands += self._offer_again(now)
        return commands

    def _offer_again(self, now: float) -> Sequence[Command]:
        refused = self._refused
        limits = self._context.limits
        if not refused:
            self._retry_due = _NEVER
            self.reads = True
            self.hurried = True
            return NOTHING
        if now - self._full_since > limits.max_wait_s:
            return self.end(f"messages have found no room for {limits.max_wait_s:g} seconds")
        self._refused = []
        self._retry_due = now + limits.retry_ms / _MS
        return [each.push(self._number) for each in refused]
