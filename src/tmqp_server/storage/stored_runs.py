"""``StoredRun``: messages of one queue to be stored, which differ only in id, payload and some
headers.

Theory of operation.  Consecutive messages of a producer arrive together, are stored together, and
are nearly always settled together, by a consumer that acknowledges in the same order: so no object
is created for a message, and settlements are recorded as "all before this one", with a set for
those that were settled out of order.
"""

from __future__ import annotations

import sys
from array import array
from typing import Final, final

from tmqp._compat import i64
from tmqp.blocks import StoredMessage

__all__ = ["StoredRun", "find_run", "unrolled"]

#: Numbers of 8 bytes in an entry of a block's index, and which of them differ within a run.
_FIELDS: Final = 7
_SEQUENCE: Final = 0
_PLACE: Final = 4
_PAYLOAD: Final = 5
_LARGEST: Final = (1 << 32) - 1
_LAST: Final = (1 << 63) - 1
_IS_BIG: Final = sys.byteorder == "big"


@final
class StoredRun:
    """The messages of a queue with the sequences ``first`` to ``last``, none of which is deferred.

    ``bodies`` has all bodies, one after another.  A message's payload ends where its body ends.
    All messages expire at the same time, ``expires_us`` (0 for never).  ``weight`` is for callers
    that account for memory.
    """

    __slots__ = (
        "first",
        "last",
        "count",
        "timestamp_us",
        "expires_us",
        "flags",
        "attempts",
        "bodies",
        "weight",
        "_gone",
        "_next",
        "_payload_offsets",
        "_sizes",
    )

    def __init__(
        self,
        first: int,
        count: int,
        timestamp_us: int,
        flags: int,
        attempts: int,
        bodies: bytes,
        sizes: list[int],
        payload_offsets: list[int],
        expires_us: int = 0,
    ) -> None:
        """:param sizes: the sizes of the bodies.
        :param payload_offsets: where in each body its payload begins.  Either list has one number
            for each message, or a single one if all are equal.
        """
        self.first = first
        self.last = first + count - 1
        self.count = count
        self.timestamp_us = timestamp_us
        self.expires_us = expires_us
        self.flags = flags
        self.attempts = attempts
        self.bodies = bodies
        self.weight = 0
        self._sizes = sizes
        if len(payload_offsets) != len(sizes):
            # One is alike in all, the other is not.
            payload_offsets = payload_offsets if len(sizes) == 1 else payload_offsets * count
            self._sizes = sizes if len(sizes) > 1 else sizes * count
        self._payload_offsets = payload_offsets
        #: All before this sequence are settled, and these behind it.
        self._next: i64 = first
        self._gone: dict[int, None] = {}

    def settle(self, sequence: int) -> bool:
        """Note that a message is settled; return True if it was not settled before."""
        if sequence == self._next:
            self._next += 1
            while self._gone and self._next in self._gone:
                del self._gone[self._next]
                self._next += 1
            return True
        if sequence < self._next or sequence in self._gone:
            return False
        self._gone[sequence] = None
        return True

    @property
    def is_over(self) -> bool:
        """Whether all messages are settled."""
        return self._next > self.last

    def settled(self) -> list[int]:
        """The sequences of the settled messages."""
        return [*range(self.first, self._next), *self._gone]

    def messages(self) -> list[StoredMessage]:
        """The messages that are not settled."""
        found: list[StoredMessage] = []
        sizes, offsets = self._sizes, self._payload_offsets
        alike = len(sizes) == 1
        start = 0
        for place in range(self.count):
            size = sizes[0 if alike else place]
            offset = offsets[0 if alike else place]
            sequence = self.first + place
            if sequence >= self._next and sequence not in self._gone:
                found.append(
                    StoredMessage(
                        sequence,
                        self.timestamp_us,
                        self.expires_us,
                        0,
                        self.flags,
                        self.attempts,
                        0,
                        0,
                        offset,
                        size - offset,
                        self.bodies[start : start + size],
                    )
                )
            start += size
        return found

    def index(self, position: int) -> bytes:
        """The entries of all its messages in a block (``tmqp.blocks``), settled or not.

        :param position: where in the block its bodies begin, counted from the end of the index.
        :raises ValueError: when a number does not fit its field.
        """
        if (
            position + len(self.bodies) > _LARGEST
            or (self.flags | self.attempts) >> 16
            or not 0 <= self.timestamp_us <= _LAST
            or not 0 <= self.expires_us <= _LAST
        ):
            raise ValueError(f"messages from {self.first} on do not fit the format")
        count = self.count
        size, offset = self._sizes[0], self._payload_offsets[0]
        counts = self.flags | self.attempts << 16
        payload = offset | (size - offset) << 32
        entries = array("Q", [0, self.timestamp_us, self.expires_us, 0, 0, payload, counts]) * count
        entries[_SEQUENCE::_FIELDS] = array("Q", range(self.first, self.first + count))
        if len(self._sizes) == 1:
            place = position | size << 32
            places = array(
                "Q", range(place, place + size * count, size) if size else [place] * count
            )
        else:
            numbers: list[int] = []
            payloads: list[int] = []
            for at in range(count):
                size, offset = self._sizes[at], self._payload_offsets[at]
                numbers.append(position | size << 32)
                payloads.append(offset | (size - offset) << 32)
                position += size
            places = array("Q", numbers)
            entries[_PAYLOAD::_FIELDS] = array("Q", payloads)
        entries[_PLACE::_FIELDS] = places
        if _IS_BIG:
            entries.byteswap()
        return entries.tobytes()

    def cut(self, most: int, most_bytes: int) -> list[StoredRun]:
        """Cut the run into pieces of at most this many messages and bytes; a single message may be
        larger. The pieces do not have its settlements.
        """
        if self.count <= most and len(self.bodies) <= most_bytes:
            return [self]
        ends: list[int] = []
        begin = size = 0
        sizes, offsets = self._sizes, self._payload_offsets
        alike = len(sizes) == 1
        if alike:
            at_once = most if sizes[0] == 0 else max(1, min(most, most_bytes // sizes[0]))
            ends.extend(range(at_once, self.count, at_once))
        else:
            for place in range(self.count):
                if place > begin and (place - begin >= most or size + sizes[place] > most_bytes):
                    ends.append(place)
                    begin, size = place, 0
                size += sizes[place]
        ends.append(self.count)
        found: list[StoredRun] = []
        begin = at = 0
        for end in ends:
            some = sizes if alike else sizes[begin:end]
            size = sizes[0] * (end - begin) if alike else sum(some)
            found.append(
                StoredRun(
                    self.first + begin,
                    end - begin,
                    self.timestamp_us,
                    self.flags,
                    self.attempts,
                    self.bodies[at : at + size],
                    some,
                    offsets if alike else offsets[begin:end],
                    self.expires_us,
                )
            )
            begin = end
            at += size
        return found


def find_run(runs: list[StoredRun], sequence: int) -> StoredRun | None:
    """The run that has a message with this sequence, among runs in increasing order; None if none
    has.
    """
    low, high = 0, len(runs)
    while low < high:
        middle = (low + high) // 2
        if runs[middle].last < sequence:
            low = middle + 1
        else:
            high = middle
    if low < len(runs) and runs[low].first <= sequence:
        return runs[low]
    return None


def unrolled(messages: list[StoredMessage] | None, runs: list[StoredRun]) -> list[StoredMessage]:
    """Merge messages and the unsettled messages of runs, in increasing sequence."""
    found = [] if messages is None else list(messages)
    for run in runs:
        found.extend(run.messages())
    found.sort(key=_sequence)
    return found


def _sequence(message: StoredMessage) -> int:
    return message.sequence
