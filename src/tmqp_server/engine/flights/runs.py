"""The accounts of messages in runs; a part of ``flights``."""

from __future__ import annotations

from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import PushRun, RunWire
from tmqp_server.engine.core import Core
from tmqp_server.engine.model.client import Client, Origin
from tmqp_server.engine.model.message import MARK_HIGH, MARK_SAVING, Message
from tmqp_server.engine.model.packed_parts import packed_form
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.tails import Tail
from tmqp_server.engine.model.waiting_parts import WaitingPart

__all__ = ["RunFlights", "WaitingRun", "waits_plainly"]


class WaitingRun(WaitingPart):
    """The messages of a run, none of which has been sent yet."""

    __slots__ = ("_channel", "_marks", "_origin", "_queue_id", "_sequence", "_since", "_wire")

    def __init__(
        self, run: PushRun, origin: Origin, marks: int, sequence: int, since: float
    ) -> None:
        super().__init__(None)
        self._wire: RunWire | None = run.wire
        self._channel = run.channel
        self._queue_id = run.queue_id
        self._origin = origin
        self._marks = marks
        #: The sequence before that of the first message.
        self._sequence = sequence
        self._since = since

    def _make(self) -> list[Message]:
        wire = self._wire
        assert wire is not None, "they are made once"
        self._wire = None
        return _waiting_of(
            self._channel,
            self._queue_id,
            wire.contents(),
            0,
            self._origin,
            self._marks,
            self._sequence,
            self._since,
        )


def _waiting_of(
    channel: str,
    queue_id: int,
    contents: tuple[list[str], list[int], list[object]],
    first: int,
    origin: Origin,
    marks: int,
    sequence: int,
    since: float,
) -> list[Message]:
    """The messages of a run from the index *first* on, waiting since *since*; *sequence* is the one
    before the run."""
    ids, sizes, wires = contents
    messages: list[Message] = []
    for place in range(first, len(ids)):
        message = Message(
            ids[place],
            origin,
            channel,
            queue_id,
            sizes[place],
            wires[place],
            marks,
            sequence + place + 1,
        )
        message.sent_at = since
        messages.append(message)
    return messages


def _by_queue(
    run: PushRun, contents: tuple[list[str], list[int], list[object]]
) -> dict[int, tuple[list[str], list[int], list[object]]]:
    """The contents of a mixed run by queue id."""
    if not run.queues:
        return {run.queue_id: contents}
    ids, sizes, wires = contents
    parts: dict[int, tuple[list[str], list[int], list[object]]] = {}
    for place, queue_id in enumerate(run.queues):
        part = parts.get(queue_id)
        if part is None:
            part = parts[queue_id] = ([], [], [])
        part[0].append(ids[place])
        part[1].append(sizes[place])
        part[2].append(wires[place])
    return parts


def _has_duplicate(queue: Queue, ids: list[str]) -> bool:
    """Whether one of these ids is in flight or occurs twice in the list."""
    if queue.duplicates or len(set(ids)) < len(ids):
        return True
    for message_id in ids:  # noqa: SIM110 - any() would make a generator
        if queue.flight(message_id) is not None:
            return True
    return False


def waits_plainly(queue: Queue) -> bool:
    """Whether messages wait in memory in order of arrival, and none needs to be examined before its
    turn."""
    discipline = queue.discipline
    return (
        discipline.stores
        and not discipline.replaces
        and not (queue.saves or queue.bounded)
        and not (queue.waits or queue.keyed or queue.leveled)
        and not queue.audience.filters
        and not (queue.fleeting or queue.spilled)
        and queue.message_timeout_s == 0.0
    )


class RunFlights:
    """The part of ``Flights`` for runs."""

    __slots__ = ("_core", "_window")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._window = core.limits.max_in_flight_per_session

    def take_off_run(
        self,
        queue: Queue,
        run: PushRun,
        contents: tuple[list[str], list[int], list[object]],
        holders: list[Client],
        origin: Origin,
        marks: int,
        now: float,
    ) -> list[Message] | None:
        """``admit``, ``give`` and ``take_off`` for messages of a run: the first is for the first of
        *holders*, and so on; *contents* are those of the run's wire form.

        The caller counts what the holders have in flight, with ``hold_run``.  Return the messages
        that must be saved, if *marks* say so.  If one of them would be a duplicate, return None and
        do nothing.
        """
        if queue.duplicates:
            return None
        timed = None if queue.timed is None else queue.timed.messages
        saves = marks & MARK_SAVING != 0
        taken = 0
        channel, queue_id = run.channel, queue.queue_id
        ids, sizes, wires = contents
        messages: list[Message] = []
        flights = queue.flights
        sequence = queue.sequence
        for place in range(len(holders)):
            message_id = ids[place]
            if message_id in flights or (timed and message_id in timed):
                for earlier in range(place):
                    del flights[ids[earlier]]
                return None
            sequence += 1
            size, wire = sizes[place], wires[place]
            message = Message(message_id, origin, channel, queue_id, size, wire, marks, sequence)
            message.attempts = 1
            message.sent_at = now
            message.holder = holders[place]
            taken += size
            flights[message_id] = message
            if saves:
                messages.append(message)
        self._admit(queue, len(holders), taken)
        if now + queue.ack_timeout_s < queue.timer.wake_at:
            self._core.wakeups.arm(queue.timer, now + queue.ack_timeout_s)
        return messages

    def take_off_mixed(
        self,
        queues: dict[int, Queue],
        run: PushRun,
        contents: tuple[list[str], list[int], list[object]],
        holder: Client,
        origin: Origin,
        marks: int,
        now: float,
    ) -> bool:
        """The same for a mixed run that is not saved and goes to one client; *queues* are those of
        the run by their ids.

        If one of its messages would be a duplicate, return False and do nothing.
        """
        parts = _by_queue(run, contents)
        if len(parts) > 1:  # a single queue is checked by take_off_run
            for queue_id, part in parts.items():
                if _has_duplicate(queues[queue_id], part[0]):
                    return False
        for queue_id, part in parts.items():
            holders = [holder] * len(part[0])
            taken = self.take_off_run(queues[queue_id], run, part, holders, origin, marks, now)
            if taken is None:
                return False
        ids, _, _ = contents
        for place in run.odd:
            queue_id = run.queues[place] if run.queues else run.queue_id
            queues[queue_id].flights[ids[place]].marks ^= MARK_HIGH
        self.hold_run(holder, run.count)
        return True

    def room(self, client: Client) -> int:
        """How many more messages a consumer may have in flight."""
        return self._window - client.in_flight

    def hold_run(self, client: Client, count: int) -> None:
        """Count so many messages of a run as in flight to a consumer."""
        client.in_flight += count
        if client.in_flight >= self._window and not client.full:
            self._fill(client)

    def line_up_run(
        self,
        queue: Queue,
        run: PushRun,
        contents: tuple[list[str], list[int], list[object]],
        first: int,
        origin: Origin,
        marks: int,
    ) -> list[Message]:
        """``admit`` each message of a run from the index *first* on, and append it to its queue.

        Return the messages that must be saved, if *marks* say so.
        """
        now = self._core.now
        messages = _waiting_of(
            run.channel, run.queue_id, contents, first, origin, marks, queue.sequence, now
        )
        taken = 0
        for message in messages:
            taken += message.size
            if not self.line_up_packed(queue, message):
                queue.put_last(message)
        self._admit(queue, len(messages), taken)
        return messages if marks & MARK_SAVING else []

    def line_up_whole(self, queue: Queue, run: PushRun, origin: Origin, marks: int) -> None:
        """The same for all messages of a run, which wait as one part."""
        part = WaitingRun(run, origin, marks, queue.sequence, self._core.now)
        queue.put_part(part, run.count, run.high_priority)
        self._admit(queue, run.count, run.size)

    def line_up_packed(self, queue: Queue, message: Message) -> bool:
        """Let a message that nothing else refers to wait as bytes, behind many others.  If there
        are few others, or if the bytes do not say everything about it, return False and do nothing.
        """
        core = self._core
        if queue.regular_count + queue.high_count < core.packs_behind or not waits_plainly(queue):
            return False
        wires = core.wires
        packed = packed_form(message, wires)
        if packed is None:
            return False
        message.sent_at = core.now  # since when it waits
        queue.put_packed(message, packed, wires)
        return True

    def _admit(self, queue: Queue, count: int, size: int) -> None:
        queue.count += count
        queue.bytes += size
        self._core.message_bytes += size + count * MESSAGE_OVERHEAD_BYTES

    # --- On disk ---------------------------------------------------------------------------------

    def store(self, queue: Queue, size: int) -> None:
        """Add the bytes of messages that the storage is asked to save and did not have before."""
        queue.disk_bytes += size

    def unstore(self, queue: Queue, size: int) -> None:
        """Subtract the bytes of messages that the storage may erase, or could not save."""
        queue.disk_bytes -= size

    def put_on_disk(self, queue: Queue, tail: Tail, count: int, size: int) -> None:
        """Count messages, whose bytes are counted already, as on disk only."""
        tail.count += count
        tail.bytes += size
        queue.spilled += count

    def take_from_disk(self, queue: Queue, tail: Tail, count: int, size: int) -> None:
        """Count messages of so many bytes in total as no longer on disk only."""
        tail.count -= count
        tail.bytes -= size
        queue.spilled -= count

    def forget_tail(self, queue: Queue, tail: Tail) -> None:
        """Stop counting the rest of a tail: it was cleared, or cannot be read."""
        queue.disk_bytes -= tail.bytes
        queue.spilled -= tail.count
        tail.count = tail.bytes = 0

    def _fill(self, client: Client) -> None:
        """Let no queue that waits for consumers send to *client* before it has answered some
        messages."""
        client.full = True
        client.closely = True
        session = self._core.sessions.get(client.number)
        if session is not None:
            self._core.recount(session)
