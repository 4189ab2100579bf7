"""``Deferrals``: the deferred messages of one queue, by time and by id.

Some of them may be on disk only: these have entries without messages in a ``DeferralShelf``.

Theory of operation.  Each priority has its own heap, so that either can be cleared separately.  The
message that is due first is in front; each entry knows its position, so a cancelled one is removed
in as many steps as the heap is deep.  The heap is ordered by time and, for equal times, by
sequence.  Producers choose the ids, which may repeat: an id finds all its entries.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.engine.books import DEFERRAL_BYTES, shelved_bytes
from tmqp_server.engine.model.message import MARK_FAILED, MARK_HIGH, Message
from tmqp_server.engine.model.times import NEVER

__all__ = ["Deferral", "DeferralLine", "DeferralShelf", "Deferrals", "ShelfLine"]


@final
class Deferral:
    """A message that is not due yet.

    ``message`` is None if it is on disk only; ``sequence`` is then that of its copy.  ``place`` is
    its place in the heap, or -1 while it is being read.
    """

    __slots__ = ("due_at", "message", "message_id", "place", "sequence", "size")

    def __init__(
        self, due_at: float, sequence: int, message_id: str, size: int, message: Message | None
    ) -> None:
        self.due_at = due_at
        self.sequence = sequence
        self.message_id = message_id
        self.size = size
        self.message = message
        self.place = 0

    def is_before(self, other: Deferral) -> bool:
        """Whether it is due before another, or at the same time and arrived before it."""
        if self.due_at != other.due_at:
            return self.due_at < other.due_at
        return self.sequence < other.sequence


@final
class DeferralLine:
    """The deferred messages of one priority of a queue."""

    __slots__ = ("_by_id", "_others", "bytes", "heap")

    def __init__(self) -> None:
        #: The first is due first.
        self.heap: list[Deferral] = []
        #: One entry of each id, and the others of that id by their sequences.
        self._by_id: dict[str, Deferral] = {}
        self._others: dict[str, dict[int, Deferral]] = {}
        #: The bytes of all messages.
        self.bytes = 0

    def find(self, message_id: str, most: int) -> list[Deferral]:
        """Up to *most* of the entries with this id, in order of arrival."""
        entry = self._by_id.get(message_id)
        if entry is None or most <= 0:
            return []
        found = [entry]
        for other in self._others.get(message_id, {}).values():
            if len(found) >= most:
                break
            found.append(other)
        return sorted(found, key=_sequence_of)

    def holds(self, message: Message) -> bool:
        """Whether a message is in this line."""
        entry = self._by_id.get(message.message_id)
        if entry is None or entry.message is message:
            return entry is not None
        others = self._others.get(message.message_id)
        return others is not None and message.sequence in others

    # --- In and out ------------------------------------------------------------------------------

    def add(self, entry: Deferral) -> None:
        """Add a message."""
        message_id = entry.message_id
        if message_id in self._by_id:
            self._others.setdefault(message_id, {})[entry.sequence] = entry
        else:
            self._by_id[message_id] = entry
        self.bytes += entry.size
        self.lower(entry)

    def lift(self) -> Deferral:
        """Take the entry that is due first out of the heap; there must be one.  It can still be
        found by its id."""
        entry = self.heap[0]
        self._leave_heap(entry)
        entry.place = -1
        return entry

    def lower(self, entry: Deferral) -> None:
        """Put an entry into the heap."""
        entry.place = len(self.heap)
        self.heap.append(entry)
        self._rise(entry)

    def take(self) -> Deferral:
        """Remove and return the entry that is due first; there must be one."""
        entry = self.heap[0]
        self.remove(entry)
        return entry

    def entry_of(self, message: Message) -> Deferral:
        """The entry of a message that is in this line."""
        entry = self._by_id[message.message_id]
        if entry.message is not message:
            entry = self._others[message.message_id][message.sequence]
        return entry

    def take_failed(self) -> list[Message]:
        """Remove and return the messages that could not be saved."""
        failed: list[Message] = []
        for entry in list(self.heap):
            message = entry.message
            if message is not None and message.marks & MARK_FAILED:
                self.remove(entry)
                failed.append(message)
        return failed

    def remove(self, entry: Deferral) -> None:
        """Remove an entry."""
        message_id = entry.message_id
        others = self._others.get(message_id)
        if others is None:
            del self._by_id[message_id]
        else:
            if self._by_id[message_id] is entry:
                self._by_id[message_id] = others.popitem()[1]
            else:
                del others[entry.sequence]
            if not others:
                del self._others[message_id]
        self.bytes -= entry.size
        if entry.place >= 0:
            self._leave_heap(entry)

    def _leave_heap(self, entry: Deferral) -> None:
        last = self.heap.pop()
        if last is not entry:
            last.place = entry.place
            self.heap[last.place] = last
            self._rise(last)
            self._sink(last)

    # --- The heap --------------------------------------------------------------------------------

    def _rise(self, entry: Deferral) -> None:
        """Let an entry that may be due earlier move towards the front."""
        heap = self.heap
        place = entry.place
        while place > 0:
            above = (place - 1) >> 1
            other = heap[above]
            if not entry.is_before(other):
                break
            heap[place] = other
            other.place = place
            place = above
        heap[place] = entry
        entry.place = place

    def _sink(self, entry: Deferral) -> None:
        """Let an entry that may be due later move towards the end."""
        heap = self.heap
        place = entry.place
        count = len(heap)
        while True:
            below = 2 * place + 1
            if below >= count:
                break
            if below + 1 < count and heap[below + 1].is_before(heap[below]):
                below += 1
            other = heap[below]
            if not other.is_before(entry):
                break
            heap[place] = other
            other.place = place
            place = below
        heap[place] = entry
        entry.place = place


@final
class ShelfLine:
    """The entries of one priority whose messages are on disk only, by sequence.

    ``awaited`` is how many answers of the storage are missing; ``memory`` is what the entries are
    charged.
    """

    __slots__ = ("_line", "_reading", "awaited", "entries", "memory")

    def __init__(self) -> None:
        self._line = DeferralLine()
        #: The first of the entries that are being read.
        self._reading: Deferral | None = None
        self.awaited = 0
        self.entries: dict[int, Deferral] = {}
        self.memory = 0

    def size(self) -> int:
        """The bytes of all these messages."""
        return self._line.bytes

    def next_due(self) -> float:
        """When the first entry that is not being read is due; NEVER while any are being read."""
        heap = self._line.heap
        return NEVER if self.awaited or not heap else heap[0].due_at

    def find(self, message_id: str, most: int) -> list[Deferral]:
        """Up to *most* of the entries with this id, in order of arrival."""
        return self._line.find(message_id, most)

    def add(self, entry: Deferral) -> None:
        """Add an entry."""
        self._line.add(entry)
        self.entries[entry.sequence] = entry
        self.memory += shelved_bytes(entry.message_id)

    def remove(self, entry: Deferral) -> None:
        """Remove an entry."""
        del self.entries[entry.sequence]
        self._line.remove(entry)
        self.memory -= shelved_bytes(entry.message_id)

    def lift(self, now: float, ahead_s: float, most: int, most_bytes: int) -> list[Deferral]:
        """Begin to read up to *most* entries that are due in *ahead_s* seconds, up to *most_bytes*,
        but at least one."""
        found: list[Deferral] = []
        line = self._line
        # The same subtraction as for the time to wake: rounding must not make them differ.
        while line.heap and line.heap[0].due_at - ahead_s <= now and len(found) < most:
            most_bytes -= line.heap[0].size
            if found and most_bytes < 0:
                break
            found.append(line.lift())
        if found:
            self._reading = found[0]
        return found

    def ask(self) -> None:
        """Count a request to the storage."""
        self.awaited += 1

    def answered(self) -> None:
        """Count an answer of the storage."""
        self.awaited -= 1
        if self.awaited == 0:
            self._reading = None

    def is_before(self, entry: Deferral) -> bool:
        """Whether an entry here must be sent before a message in memory."""
        heap = self._line.heap
        if heap and heap[0].is_before(entry):
            return True
        return self._reading is not None and self._reading.is_before(entry)

    def lower(self, entry: Deferral) -> None:
        """Put an entry back that was not read."""
        self._line.lower(entry)


@final
class DeferralShelf:
    """The deferred messages of one queue that are on disk only; ``wake_at`` is when the next ones
    must be read."""

    __slots__ = ("high", "regular", "wake_at")

    def __init__(self) -> None:
        self.high = ShelfLine()
        self.regular = ShelfLine()
        self.wake_at = NEVER

    def line_of(self, high_priority: bool) -> ShelfLine:
        """The entries of a priority."""
        return self.high if high_priority else self.regular

    def detach(self, high_priority: bool) -> dict[int, Deferral]:
        """Remove and return all entries of one priority; what is being read of them will be
        ignored."""
        entries = self.line_of(high_priority).entries
        if high_priority:
            self.high = ShelfLine()
        else:
            self.regular = ShelfLine()
        return entries


@final
class Deferrals:
    """The deferred messages of one queue."""

    __slots__ = ("_high", "_regular", "shelf")

    def __init__(self) -> None:
        self._high = DeferralLine()
        self._regular = DeferralLine()
        #: Those that are on disk only; None until there are some.
        self.shelf: DeferralShelf | None = None

    def __len__(self) -> int:
        return self.in_memory() + self.on_disk()

    def in_memory(self) -> int:
        """The number of messages in memory."""
        return len(self._high.heap) + len(self._regular.heap)

    def on_disk(self) -> int:
        """The number of messages on disk only."""
        shelf = self.shelf
        return 0 if shelf is None else len(shelf.high.entries) + len(shelf.regular.entries)

    def size(self) -> int:
        """The bytes of the messages in memory."""
        return self._high.bytes + self._regular.bytes

    def memory(self) -> int:
        """Their charge in the books, beyond that of the messages in memory."""
        shelf = self.shelf
        shelved = 0 if shelf is None else shelf.high.memory + shelf.regular.memory
        return self.in_memory() * DEFERRAL_BYTES + shelved

    def next_due(self) -> float:
        """When the first message is due or the next on disk must be read; NEVER if none."""
        first = self._first()
        due = NEVER if first is None else first.heap[0].due_at
        return due if self.shelf is None else min(due, self.shelf.wake_at)

    def messages(self) -> list[Message]:
        """All messages in memory, in no particular order."""
        found: list[Message] = []
        for line in (self._high, self._regular):
            for entry in line.heap:
                if entry.message is not None:
                    found.append(entry.message)
        return found

    def snapshot(self) -> list[list[Deferral]]:
        """A copy of all lists at this moment."""
        lists = [list(self._high.heap), list(self._regular.heap)]
        if self.shelf is not None:
            lists.append(list(self.shelf.high.entries.values()))
            lists.append(list(self.shelf.regular.entries.values()))
        return lists

    def find(self, message_id: str, most: int) -> list[Message]:
        """Up to *most* of the messages in memory with this id: high priority first, each priority
        in order of arrival."""
        entries = self._high.find(message_id, most)
        entries += self._regular.find(message_id, most - len(entries))
        found: list[Message] = []
        for entry in entries:
            if entry.message is not None:
                found.append(entry.message)
        return found

    def add(self, message: Message, due_at: float) -> None:
        """Add a message."""
        entry = Deferral(due_at, message.sequence, message.message_id, message.size, message)
        self._line_of(message).add(entry)

    def take(self, now: float) -> Message | None:
        """Remove and return the next message that is due, or None.  A message on disk only delays
        those after it until it has been read."""
        first = self._first()
        if first is None or first.heap[0].due_at > now:
            return None
        return first.take().message

    def holds(self, message: Message) -> bool:
        """Whether a message is here, in memory."""
        return self._line_of(message).holds(message)

    def remove(self, message: Message) -> None:
        """Remove a message that is here."""
        line = self._line_of(message)
        line.remove(line.entry_of(message))

    def detach(self, high_priority: bool) -> list[Deferral]:
        """Remove and return all entries of one priority in memory, in constant time."""
        if high_priority:
            entries = self._high.heap
            self._high = DeferralLine()
        else:
            entries = self._regular.heap
            self._regular = DeferralLine()
        return entries

    def take_failed(self) -> list[Message]:
        """Remove and return the messages that could not be saved."""
        return self._high.take_failed() + self._regular.take_failed()

    def _line_of(self, message: Message) -> DeferralLine:
        return self._high if message.marks & MARK_HIGH else self._regular

    def _first(self) -> DeferralLine | None:
        """The priority whose first message is due first; one that must wait for the disk is left
        out."""
        high, regular = self._high, self._regular
        shelf = self.shelf
        if not high.heap or (shelf is not None and shelf.high.is_before(high.heap[0])):
            high = _NOTHING
        if not regular.heap or (shelf is not None and shelf.regular.is_before(regular.heap[0])):
            regular = _NOTHING
        if not high.heap:
            return regular if regular.heap else None
        if regular.heap and regular.heap[0].is_before(high.heap[0]):
            return regular
        return high


#: A line that stays empty.
_NOTHING: Final = DeferralLine()


def _sequence_of(entry: Deferral) -> int:
    return entry.sequence
