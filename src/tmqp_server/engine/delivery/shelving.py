"""Reads deferred messages that are on disk only, before they are due.

Theory of operation.  A queue is woken ``LOOK_AHEAD_S`` before the next of them is due, and reads
the messages that are due within that time, in portions, as long as there is room in memory
(``flights/deferred.py``); without room it reads only due ones.  A portion is requested as ranges of
sequences that are close together, one portion at a time for each priority.  Messages that were read
wait in memory until they are due, and messages that are due after one that has not been read wait
for it: so they keep their order even if the disk is late.

A message that is cancelled or cleared meanwhile is skipped when it arrives.  A message that the
storage cannot find is dropped and counted.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.commands import Fetched, KeptMessage
from tmqp_server.engine.core import Core, PendingRead
from tmqp_server.engine.delivery.returning import Returned
from tmqp_server.engine.flights import LOOK_AHEAD_S, Flights
from tmqp_server.engine.model.deferrals import Deferral, ShelfLine
from tmqp_server.engine.model.message import MARK_SAVED
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.times import NEVER

__all__ = ["PendingShelf", "Shelving", "read_ahead"]

#: Messages, and bytes, of a portion.
_MOST: Final = 256
_MOST_BYTES: Final = 1_048_576
#: Two messages whose sequences differ by more are not read together.
_MOST_APART: Final = 16


class PendingShelf(PendingRead):
    """Deferred messages that were requested, by rising sequence."""

    __slots__ = ("entries", "line")

    def __init__(
        self, queue: Queue, line: ShelfLine, high_priority: bool, entries: list[Deferral]
    ) -> None:
        super().__init__(queue, high_priority)
        self.line = line
        self.entries = entries


def read_ahead(core: Core, queue: Queue) -> None:
    """Request the deferred messages of a queue that are due soon, and set when to do so again."""
    shelf = queue.deferred.shelf
    if shelf is None or queue.closed:
        return
    others = queue.deferred.in_memory()
    room = 2 * queue.memory_limit - others
    if not queue.keeps_deferred(others, 0, True):
        room = 0
    wake_at = NEVER
    for high_priority in (True, False):
        line = shelf.line_of(high_priority)
        if line.awaited == 0:
            entries = line.lift(core.now, 0.0, _MOST, _MOST_BYTES)
            if not entries and room > 0:
                entries = line.lift(core.now, LOOK_AHEAD_S, min(room, _MOST), _MOST_BYTES)
            room -= len(entries)
            if entries:
                _ask(core, queue, line, high_priority, entries)
        due = line.next_due()
        wake_at = min(wake_at, due - LOOK_AHEAD_S if room > 0 else due)
    shelf.wake_at = wake_at


def _ask(
    core: Core, queue: Queue, line: ShelfLine, high_priority: bool, entries: list[Deferral]
) -> None:
    """Request messages; those with close sequences are requested together."""
    entries.sort(key=_sequence_of)
    near: list[Deferral] = []
    for entry in entries:
        if near and entry.sequence - near[len(near) - 1].sequence > _MOST_APART:
            _ask_for(core, PendingShelf(queue, line, high_priority, near))
            near = []
        near.append(entry)
    _ask_for(core, PendingShelf(queue, line, high_priority, near))


def _ask_for(core: Core, pending: PendingShelf) -> None:
    entries = pending.entries
    after = entries[0].sequence - 1
    last = entries[len(entries) - 1].sequence
    pending.line.ask()
    core.fetch(pending, after, last, last - after, _MOST_BYTES)


class Shelving:
    """Handles the storage's answers about deferred messages."""

    __slots__ = ("_core", "_flights")

    def __init__(self, core: Core, flights: Flights) -> None:
        self._core = core
        self._flights = flights

    def fetched(self, asked: PendingShelf, command: Fetched) -> None:
        """Let messages that were read wait in memory until they are due."""
        queue = asked.queue
        line = asked.line
        line.answered()
        shelf = queue.deferred.shelf
        if shelf is None or shelf.line_of(asked.high_priority) is not line:
            return  # cleared meanwhile
        if command.withheld:
            self._core.withhold(queue, command.withheld)
        found: dict[int, KeptMessage] = {}
        for kept in command.messages:
            found[kept.sequence] = kept
        returned = Returned(queue, asked.high_priority)
        for entry in asked.entries:
            if line.entries.get(entry.sequence) is not entry:
                continue  # cancelled meanwhile
            here = found.get(entry.sequence)
            if here is not None:
                self._take_down(queue, line, entry, here, returned)
            elif entry.sequence > command.up_to:
                line.lower(entry)
            else:
                self._flights.lose(queue, line, entry)
        read_ahead(self._core, queue)
        self._core.arm(queue)

    def _take_down(
        self,
        queue: Queue,
        line: ShelfLine,
        entry: Deferral,
        kept: KeptMessage,
        returned: Returned,
    ) -> None:
        marks = 0 if kept.transient else MARK_SAVED
        message = returned.message(kept, marks, self._core.now)
        message.rarely().due_at = entry.due_at  # the storage keeps whole microseconds
        self._flights.take_down(queue, line, entry, message, kept.transient)


def _sequence_of(entry: Deferral) -> int:
    return entry.sequence
