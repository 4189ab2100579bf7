"""``Deferrals``: the messages of one queue that are not to be sent yet, by time and by id.

Theory of operation.  Each priority has a line of its own, so that either can be cleared in one go.
A heap has the message that is due first in front; each entry knows its place
in it, so one that is cancelled leaves without a trace, in as many steps as the heap is deep.  The
heap is ordered by time and, at the same time, by sequence.  Ids are the producers' choice and may
repeat: the entries of one id are all found by it.
"""

from __future__ import annotations

from typing import final

from tmqp_server.engine.model.message import MARK_FAILED, MARK_HIGH, Message
from tmqp_server.engine.model.times import NEVER

__all__ = ["Deferral", "DeferralLine", "Deferrals"]


@final
class Deferral:
    """A message that waits for its time; ``place`` is its place in the heap."""

    __slots__ = ("due_at", "message", "place", "sequence")

    def __init__(self, due_at: float, sequence: int, message: Message) -> None:
        self.due_at = due_at
        self.sequence = sequence
        self.message = message
        self.place = 0

    def is_before(self, other: Deferral) -> bool:
        """Whether it is due before another, or at the same time and came before it."""
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
        #: One entry for each id, and the further ones of that id by their sequences.
        self._by_id: dict[str, Deferral] = {}
        self._others: dict[str, dict[int, Deferral]] = {}
        #: Of all of them.
        self.bytes = 0

    def find(self, message_id: str, most: int) -> list[Message]:
        """Up to *most* of the messages with this id, in the order in which they came."""
        entry = self._by_id.get(message_id)
        if entry is None or most <= 0:
            return []
        found = [entry.message]
        for other in self._others.get(message_id, {}).values():
            if len(found) >= most:
                break
            found.append(other.message)
        return sorted(found, key=_sequence_of)

    # --- In and out ------------------------------------------------------------------------------

    def add(self, message: Message, due_at: float) -> None:
        """Let a message wait until its time."""
        entry = Deferral(due_at, message.sequence, message)
        if message.message_id in self._by_id:
            self._others.setdefault(message.message_id, {})[entry.sequence] = entry
        else:
            self._by_id[message.message_id] = entry
        self.bytes += message.size
        entry.place = len(self.heap)
        self.heap.append(entry)
        self._rise(entry)

    def take(self) -> Message:
        """Take out the message that is due first; there must be one."""
        entry = self.heap[0]
        self._remove(entry)
        return entry.message

    def remove(self, message: Message) -> None:
        """Take out a message that is here."""
        entry = self._by_id[message.message_id]
        if entry.message is not message:
            entry = self._others[message.message_id][message.sequence]
        self._remove(entry)

    def take_failed(self) -> list[Message]:
        """Take out those that could not be saved."""
        failed = [entry for entry in self.heap if entry.message.marks & MARK_FAILED]
        for entry in failed:
            self._remove(entry)
        return [entry.message for entry in failed]

    def _remove(self, entry: Deferral) -> None:
        message_id = entry.message.message_id
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
        self.bytes -= entry.message.size
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
class Deferrals:
    """The deferred messages of one queue."""

    __slots__ = ("_high", "_regular")

    def __init__(self) -> None:
        self._high = DeferralLine()
        self._regular = DeferralLine()

    def __len__(self) -> int:
        return len(self._high.heap) + len(self._regular.heap)

    def size(self) -> int:
        """The bytes of all of them."""
        return self._high.bytes + self._regular.bytes

    def next_due(self) -> float:
        """When the first of them is due, or NEVER."""
        first = self._first()
        return NEVER if first is None else first.heap[0].due_at

    def messages(self) -> list[Message]:
        """All of them, in no particular order."""
        return [entry.message for line in (self._high, self._regular) for entry in line.heap]

    def snapshot(self) -> list[list[Deferral]]:
        """All there is at this moment, copied in one go."""
        return [list(self._high.heap), list(self._regular.heap)]

    def find(self, message_id: str, most: int) -> list[Message]:
        """Up to *most* of the messages with this id: the high-priority ones first, each priority
        in the order in which they came."""
        found = self._high.find(message_id, most)
        return found + self._regular.find(message_id, most - len(found))

    def add(self, message: Message, due_at: float) -> None:
        """Let a message wait until its time."""
        self._line_of(message).add(message, due_at)

    def take(self, now: float) -> Message | None:
        """Take out the next message whose time has come, or None."""
        first = self._first()
        if first is None or first.heap[0].due_at > now:
            return None
        return first.take()

    def remove(self, message: Message) -> None:
        """Take out a message that is here."""
        self._line_of(message).remove(message)

    def detach(self, high_priority: bool) -> list[Deferral]:
        """Take out all of one priority, however many there are."""
        if high_priority:
            entries = self._high.heap
            self._high = DeferralLine()
        else:
            entries = self._regular.heap
            self._regular = DeferralLine()
        return entries

    def take_failed(self) -> list[Message]:
        """Take out those that could not be saved."""
        return self._high.take_failed() + self._regular.take_failed()

    def _line_of(self, message: Message) -> DeferralLine:
        return self._high if message.marks & MARK_HIGH else self._regular

    def _first(self) -> DeferralLine | None:
        """The priority whose first message is due first, if there is one."""
        high, regular = self._high, self._regular
        if not high.heap:
            return regular if regular.heap else None
        if regular.heap and regular.heap[0].is_before(high.heap[0]):
            return regular
        return high


def _sequence_of(message: Message) -> int:
    return message.sequence
