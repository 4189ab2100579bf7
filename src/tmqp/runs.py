"""``FrameRun``: messages in a row that differ in little but id, payload and headers.

A producer that pushes all day into one queue sends the same head again and again: type, flags, time
to live, source, target and queue; and so does the consumer that acknowledges them.  Whoever
forwards such messages without keeping them needs no object for each: a run keeps the first as a
frame, and of all of them the bytes behind the first two, which are the only ones that a forwarder
rewrites (F2, F11).  Between each two of these pieces stand the same two bytes, so that a whole run
is written by one join.

A run may be *mixed*: its messages go into several queues of one target, or some have priority over
others, or its acknowledges are about several queues.  The queue's number is behind the first two
bytes, so it costs nothing; a frame of the other priority brings its own first two.

What clients say to each other comes in runs as well: direct messages, responses, and acknowledges
of direct messages.  These keep all flags, and their content type is for the receiver alone.

Only the decoder makes runs, of frames that it has checked as any other.
"""

from __future__ import annotations

from typing import Final, final

from tmqp._compat import i64, mypyc_attr
from tmqp.bits import (
    FIRST_ACQUIRER,
    HAS_HEADER,
    HEAD_BYTES,
    HIGH_PRIORITY,
    MARKED_TYPE_BITS,
    PENDING_ACKNOWLEDGE,
    TIER_U16,
    TTL_BITS,
)
from tmqp.frames import Frame

__all__ = ["FrameRun"]

#: What is left of the head when its first two bytes are missing.
_TAIL_HEAD_BYTES: Final = 6


@mypyc_attr(acyclic=True)
@final
class FrameRun:
    """Two or more frames, each with an id and a hop left, and all with the same flags: of type
    QueueMessage (not to be answered), DirectMessage or Response, all with a header block or all
    without, or Acknowledge (positive, not to be acknowledged; all marked as for a direct message,
    or none).

    ``first`` is the first of them, ``at`` its place in the list of frames it came with; ``count``
    is how many there are, ``size`` their bytes, and ``largest`` those of the largest.

    ``queues`` are the numbers of their queues in order, or empty where all go into that of the
    first; ``odd`` the places of those that have priority where the first has none, or the other way
    round.  What has no queue has neither.
    """

    __slots__ = ("_tails", "at", "count", "first", "largest", "odd", "queues", "size")

    def __init__(
        self,
        first: Frame,
        at: int,
        tails: list[bytes],
        size: int,
        largest: int,
        queues: list[int] | None = None,
        odd: list[int] | None = None,
    ) -> None:
        """For the decoder only.

        :param tails: the bytes of each frame behind the first two, an empty piece before them.
        """
        self.queues: list[int] = [] if queues is None else queues
        self.odd: list[int] = [] if odd is None else odd
        self.first = first
        self.at = at
        self.count = len(tails) - 1
        self.size = size
        self.largest = largest
        self._tails = tails

    @property
    def is_mixed(self) -> bool:
        """Whether they go into several queues, or differ in priority."""
        return len(self.queues) > 0 or len(self.odd) > 0

    def forwarded(self, first_acquirer: bool, pending_acknowledge: bool, ttl: int) -> bytes:
        """Return the bytes of all frames with these flags and this time to live (0..31) written in.

        The same as :meth:`tmqp.Frame.forwarded` of each, in their order.
        """
        b0 = self.first.raw[0] & MARKED_TYPE_BITS
        if first_acquirer:
            b0 |= FIRST_ACQUIRER
        # The other flags of the second byte are not set in a frame of a run.
        b1 = ttl & TTL_BITS | self.first.raw[1] & HAS_HEADER
        if pending_acknowledge:
            b1 |= PENDING_ACKNOWLEDGE
        return self._joined(b0, b1)

    def _joined(self, b0: int, b1: int) -> bytes:
        """All frames, with these first two bytes of the first."""
        head = bytes((b0, b1))
        if not self.odd:
            return head.join(self._tails)
        other = bytes((b0 ^ HIGH_PRIORITY, b1))
        pieces = [head] * (2 * self.count)
        pieces[1::2] = self._tails[1:]
        for place in self.odd:
            pieces[2 * place] = other
        return b"".join(pieces)

    def forwarded_some(
        self,
        start: int,
        step: int,
        stop: int,
        first_acquirer: bool,
        pending_acknowledge: bool,
        ttl: int,
    ) -> bytes:
        """As :meth:`forwarded`, of the frames at the places ``start``, ``start + step`` and so on
        before ``stop``."""
        tails = [self._tails[0]]
        tails += self._tails[start + 1 : stop + 1 : step]
        odd = [
            (place - start) // step
            for place in self.odd
            if start <= place < stop and (place - start) % step == 0
        ]
        some = FrameRun(self.first, self.at, tails, self.size, self.largest, None, odd)
        return some.forwarded(first_acquirer, pending_acknowledge, ttl)

    def passed_on(self, start: int, stop: int) -> bytes:
        """The bytes of the frames from the place ``start`` to before ``stop`` as they came, one hop
        older."""
        raw = self.first.raw
        head = bytes((raw[0], raw[1] - 1))  # a hop is left
        if stop - start == self.count:
            return head.join(self._tails)
        return head.join([b"", *self._tails[start + 1 : stop + 1]])

    def received(self) -> bytes:
        """The bytes of all frames, as they came."""
        raw = self.first.raw
        return self._joined(raw[0], raw[1])

    def layout(self) -> tuple[list[int], list[int]]:
        """The size of each frame in bytes, and where in it the payload begins, which reaches to
        its end; a single number each when that is the same in all.
        """
        first = self.first.raw
        id_at: i64 = HEAD_BYTES if first[7] < TIER_U16 else HEAD_BYTES + 2
        id_bytes: i64 = first[2]
        names: i64 = first[3] + first[4]
        tails = self._tails
        size: i64 = len(first)
        has_header = first[1] & HAS_HEADER != 0
        alike = self.size == size * self.count and self.largest == size and not has_header
        if alike:
            for tail in tails:
                if tail and tail[0] != id_bytes:
                    alike = False
                    break
        if alike:
            return [size], [id_at + id_bytes + names]
        sizes: list[int] = []
        offsets: list[int] = []
        for tail in tails:
            if tail:
                sizes.append(len(tail) + 2)
                at: i64 = HEAD_BYTES if tail[5] < TIER_U16 else HEAD_BYTES + 2
                id_bytes = tail[0]
                at += id_bytes + names
                if has_header:
                    at += 2 + (tail[at - 2] | tail[at - 1] << 8)
                offsets.append(at)
        return sizes, offsets

    def has_equal_headers(self) -> bool:
        """Whether the header blocks of all frames are the same, byte by byte, or none has one."""
        first = self.first
        if first.raw[1] & HAS_HEADER == 0:
            return True
        block = first.header_block
        size: i64 = len(block)
        names: i64 = first.raw[3] + first.raw[4]
        for tail in self._tails:
            if tail:
                at: i64 = _TAIL_HEAD_BYTES if tail[5] < TIER_U16 else _TAIL_HEAD_BYTES + 2
                at += tail[0] + names
                if tail[at] | tail[at + 1] << 8 != size or not tail.startswith(block, at + 2):
                    return False
        return True

    def frames(self) -> list[Frame]:
        """The single frames."""
        first = self.first
        frames = [first]
        head = first.raw[:2]
        source, target = first.source, first.target
        names: i64 = first.raw[3] + first.raw[4]
        has_header = first.raw[1] & HAS_HEADER != 0
        odd = set(self.odd)
        has_odd = len(odd) > 0
        other = bytes((head[0] ^ HIGH_PRIORITY, head[1]))
        tails = self._tails
        for place in range(2, len(tails)):
            raw = (other if has_odd and place - 1 in odd else head) + tails[place]
            id_at: i64 = HEAD_BYTES if raw[7] < TIER_U16 else HEAD_BYTES + 2
            id_end = id_at + raw[2]
            body = id_end + names
            if has_header:
                body += 2 + (raw[body] | raw[body + 1] << 8)
            frames.append(Frame(raw, raw[id_at:id_end].decode(), source, target, body))
        return frames

    def message_ids(self) -> list[str]:
        """The ids, in order."""
        ids: list[str] = []
        for tail in self._tails:
            if tail:
                id_at: i64 = _TAIL_HEAD_BYTES if tail[5] < TIER_U16 else _TAIL_HEAD_BYTES + 2
                ids.append(tail[id_at : id_at + tail[0]].decode())
        return ids

    def __repr__(self) -> str:
        return f"<FrameRun of {self.count}, {self.size} bytes: {self.first!r} ...>"
