"""``FrameRun``: consecutive messages that differ in little but id, payload and headers.

A producer that pushes into one queue sends the same type, flags, time to live, source, target and
queue again and again; so does the consumer that acknowledges its messages.  A program that forwards
such messages without keeping them needs no object for each.  A run keeps the first message as a
frame, and of every message the bytes after the first two, because a forwarder rewrites only these
two (F2, F11).  They are the same for all messages, so one join writes a whole run.

A run may be *mixed*: its messages are for several queues of one target or have both priorities, or
its acknowledgements are for several queues.  The queue's number is after the first two bytes, so it
needs no special treatment; a frame of the other priority has its own first two bytes.

Messages between clients form runs as well: direct messages, responses, and acknowledgements of
direct messages.  These keep all flags, and their content type is for the receiver alone.

Only the decoder makes runs, from frames that it has checked like all others.
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
    TYPE_BITS,
)
from tmqp.constants import TYPE_ACKNOWLEDGE, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame

__all__ = ["FrameRun", "cut_evenly", "is_about_queue", "of_other_priority"]

#: The size of the head without the bytes that a forwarder rewrites.
_TAIL_HEAD_BYTES: Final = 6
#: The number of these bytes.
_REWRITTEN_BYTES: Final = 2
#: One-byte strings by value.
_ONE_BYTE: Final = [bytes((value,)) for value in range(256)]


@mypyc_attr(acyclic=True)
@final
class FrameRun:
    """Two or more frames of one kind, each with an id and at least one hop left, and all with the
    same flags: queue messages that do not ask for a response, direct messages or responses, all
    with a header block or all without, or positive acknowledgements that need no acknowledgement
    themselves, all of queue messages or all of direct messages.

    ``first`` is the first frame and ``at`` its index in the list of frames that ``feed`` returned;
    ``count`` is the number of frames, ``size`` their size in bytes, and ``largest`` that of the
    largest.

    ``queues`` are the numbers of their queues in order, or empty if all have the queue of the
    first; ``odd`` are the indexes of the frames whose priority differs from that of the first.
    Frames that are not about a queue have neither.
    """

    __slots__ = (
        "_data",
        "_length",
        "_offset",
        "_starts",
        "_tails",
        "at",
        "count",
        "first",
        "largest",
        "odd",
        "queues",
        "size",
    )

    def __init__(
        self,
        first: Frame,
        at: int,
        count: int,
        tails: list[bytes],
        starts: list[int],
        data: bytes,
        offset: i64,
        size: int,
        largest: int,
        queues: list[int],
        odd: list[int],
    ) -> None:
        """For the decoder only.

        :param tails: for small frames of several lengths, an empty piece, and then the bytes of
            each frame after its first two; otherwise empty.
        :param starts: for large frames of several lengths, the offset of each from the first;
            otherwise empty.
        :param data: the bytes that contain the frames from ``offset`` on, if there are no
            ``tails``.
        """
        self.queues = queues
        self.odd = odd
        self.first = first
        self.at = at
        self.count = count
        self.size = size
        self.largest = largest
        self._tails = tails
        self._starts = starts
        self._data = data
        self._offset: i64 = offset
        #: The length of each frame; 0 if they differ.
        self._length: i64 = 0 if tails or starts else largest

    @property
    def is_mixed(self) -> bool:
        """Whether the frames are for several queues, or differ in priority."""
        return len(self.queues) > 0 or len(self.odd) > 0

    def forwarded(self, first_acquirer: bool, pending_acknowledge: bool, ttl: int) -> bytes:
        """Return the bytes of all frames with these flags and this time to live (0..31).

        The result is :meth:`tmqp.Frame.forwarded` of each frame, in order.
        """
        b0, b1 = self._forwarded_head(first_acquirer, pending_acknowledge, ttl)
        return self._joined(b0, b1)

    def _forwarded_head(
        self, first_acquirer: bool, pending_acknowledge: bool, ttl: int
    ) -> tuple[int, int]:
        """The first two bytes of the first frame with these flags and time to live."""
        b0 = self.first.raw[0] & MARKED_TYPE_BITS
        if first_acquirer:
            b0 |= FIRST_ACQUIRER
        # The other flags of the second byte are not set in a frame of a run.
        b1 = ttl & TTL_BITS | self.first.raw[1] & HAS_HEADER
        if pending_acknowledge:
            b1 |= PENDING_ACKNOWLEDGE
        return b0, b1

    def _joined(self, b0: int, b1: int) -> bytes:
        """All frames, if the first one begins with these two bytes."""
        if self._length > 0:
            return self._rewritten(0, self.count, b0, b1)
        if self._starts:
            return self._rewritten_singly(b0, b1)
        head = bytes((b0, b1))
        if not self.odd:
            return head.join(self._tails)
        return _with_odd(self._tails, self.odd, b0, b1)

    def _rewritten(self, start: i64, stop: i64, b0: int, b1: int) -> bytes:
        """The frames with the indexes ``start`` to before ``stop``, all of one length, beginning
        with these two bytes, except for the odd ones; two assignments write the bytes of all
        frames."""
        length = self._length
        begin = self._offset + start * length
        out = bytearray(self._data[begin : self._offset + stop * length])
        count = stop - start
        step: int = length
        out[::step] = _ONE_BYTE[b0] * count
        out[1::step] = _ONE_BYTE[b1] * count
        for place in self.odd:
            if start <= place < stop:
                out[(place - start) * step] = b0 ^ HIGH_PRIORITY
        return bytes(out)

    def _rewritten_singly(self, b0: int, b1: int) -> bytes:
        """All frames, of several lengths, beginning with these two bytes, except for the odd
        ones."""
        offset = self._offset
        out = bytearray(self._data[offset : offset + self.size])
        starts = self._starts
        for at in starts:
            out[at] = b0
            out[at + 1] = b1
        for place in self.odd:
            out[starts[place]] = b0 ^ HIGH_PRIORITY
        return bytes(out)

    def _pieces(self) -> list[bytes]:
        """An empty piece, and then the bytes of each frame after its first two."""
        tails = self._tails
        if tails:
            return tails
        offset = self._offset
        stop = offset + self.size
        if self._length > 0:
            cut_evenly(self._data, offset, self._length, stop, tails)
        else:
            tails.append(b"")
            for raw in self._raws(0):
                tails.append(raw[2:])
        return tails

    def forwarded_some(
        self,
        start: int,
        step: int,
        stop: int,
        first_acquirer: bool,
        pending_acknowledge: bool,
        ttl: int,
    ) -> bytes:
        """Do as :meth:`forwarded`, for the frames with the indexes ``range(start, stop, step)``."""
        b0, b1 = self._forwarded_head(first_acquirer, pending_acknowledge, ttl)
        return self._some(start, step, stop, b0, b1)

    def _some(self, start: int, step: int, stop: int, b0: int, b1: int) -> bytes:
        """The frames with these indexes, beginning with these two bytes, except for the odd
        ones."""
        if step == 1 and self._length > 0:
            return self._rewritten(start, stop, b0, b1)
        pieces = self._pieces()
        tails = [pieces[0]]
        tails += pieces[start + 1 : stop + 1 : step]
        odd = [
            (place - start) // step
            for place in self.odd
            if start <= place < stop and (place - start) % step == 0
        ]
        if odd:
            return _with_odd(tails, odd, b0, b1)
        return bytes((b0, b1)).join(tails)

    def passed_on(self, start: int, stop: int) -> bytes:
        """Return the bytes of the frames with the indexes ``start`` to before ``stop`` as they
        arrived, with one hop less."""
        raw = self.first.raw
        b0, b1 = raw[0], raw[1] - 1  # a hop is left
        if stop - start == self.count:
            return self._joined(b0, b1)
        return self._some(start, 1, stop, b0, b1)

    def received(self) -> bytes:
        """Return the bytes of all frames, as they arrived."""
        if self._data:
            return self._data[self._offset : self._offset + self.size]
        raw = self.first.raw
        return self._joined(raw[0], raw[1])

    def layout(self) -> tuple[list[int], list[int]]:
        """Return the size of each frame in bytes, and the offset of its payload, which reaches to
        the frame's end; if all frames have the same, each list has a single number.
        """
        first = self.first.raw
        id_at: i64 = HEAD_BYTES if first[7] < TIER_U16 else HEAD_BYTES + 2
        id_bytes: i64 = first[2]
        names: i64 = first[3] + first[4]
        has_header = first[1] & HAS_HEADER != 0
        length = self._length
        if (
            length > 0
            and not has_header
            # The lengths of id and payload, and the form of the latter, are the same in all.
            and self._have_all(2, first[2])
            and self._have_all(7, first[7])
        ):
            return [int(length)], [id_at + id_bytes + names]
        sizes: list[int] = []
        offsets: list[int] = []
        if self._starts:
            for raw in self._raws(0):
                sizes.append(len(raw))
                offsets.append(_payload_at(raw, 0, names, has_header))
            return sizes, offsets
        for tail in self._pieces():
            if tail:
                sizes.append(len(tail) + _REWRITTEN_BYTES)
                offsets.append(_payload_at(tail, -_REWRITTEN_BYTES, names, has_header))
        return sizes, offsets

    def _have_all(self, place: i64, byte: int) -> bool:
        """Whether all frames, which have one length, have this byte at an offset."""
        begin, step = self._offset + place, self._length
        return self._data[begin : self._offset + self.size : step].count(byte) == self.count

    def has_equal_headers(self) -> bool:
        """Return whether all frames have the same header block, byte by byte, or none has one."""
        first = self.first
        if first.raw[1] & HAS_HEADER == 0:
            return True
        block = first.header_block
        size: i64 = len(block)
        names: i64 = first.raw[3] + first.raw[4]
        for tail in self._pieces():
            if tail:
                at: i64 = _TAIL_HEAD_BYTES if tail[5] < TIER_U16 else _TAIL_HEAD_BYTES + 2
                at += tail[0] + names
                if tail[at] | tail[at + 1] << 8 != size or not tail.startswith(block, at + 2):
                    return False
        return True

    def frames(self) -> list[Frame]:
        """Return the frames one by one."""
        first = self.first
        frames = [first]
        source, target = first.source, first.target
        names: i64 = first.raw[3] + first.raw[4]
        has_header = first.raw[1] & HAS_HEADER != 0
        for raw in self._raws(1):
            id_at: i64 = HEAD_BYTES if raw[7] < TIER_U16 else HEAD_BYTES + 2
            id_end = id_at + raw[2]
            body = id_end + names
            if has_header:
                body += 2 + (raw[body] | raw[body + 1] << 8)
            frames.append(Frame(raw, raw[id_at:id_end].decode(), source, target, body))
        return frames

    def _raws(self, place: i64) -> list[bytes]:
        """The bytes of each frame from this index on."""
        raws: list[bytes] = []
        data = self._data
        offset = self._offset
        end = offset + self.size
        length = self._length
        starts = self._starts
        if length > 0:
            first = offset + place * length
            raws = [data[begin : begin + length] for begin in range(first, end, length)]
        elif starts:
            at = offset + starts[place]
            while place + 1 < len(starts):
                place += 1
                stop = offset + starts[place]
                raws.append(data[at:stop])
                at = stop
            raws.append(data[at:end])
        else:
            head = self.first.raw[:2]
            odd = set(self.odd)
            has_odd = len(odd) > 0
            other = bytes((head[0] ^ HIGH_PRIORITY, head[1]))
            for each in range(place, len(self._tails) - 1):
                tail = self._tails[each + 1]
                raws.append((other if has_odd and each in odd else head) + tail)
        return raws

    def message_ids(self) -> list[str]:
        """Return the message ids, in order."""
        ids: list[str] = []
        data = self._data
        head = self._offset
        end = head + self.size
        length = self._length
        if length > 0:
            while head < end:
                ids.append(_id_at(data, head))
                head += length
        elif self._starts:
            for place in self._starts:
                ids.append(_id_at(data, head + place))
        else:
            for tail in self._tails:
                if tail:
                    ids.append(_id_at(tail, -_REWRITTEN_BYTES))
        return ids

    def __repr__(self) -> str:
        return f"<FrameRun of {self.count}, {self.size} bytes: {self.first!r} ...>"


def is_about_queue(b0: i64) -> bool:
    """Whether the content type of a frame with this first byte is a queue id; otherwise only the
    receiving client uses it."""
    return b0 & TYPE_BITS == TYPE_QUEUE_MESSAGE or b0 & MARKED_TYPE_BITS == TYPE_ACKNOWLEDGE


def of_other_priority(b0: i64) -> i64:
    """Return the first byte of the same frame with the other priority."""
    if b0 & TYPE_BITS == TYPE_QUEUE_MESSAGE:
        return b0 ^ HIGH_PRIORITY
    return b0  # in an acknowledgement, the bit means that it is for a client


def _payload_at(data: bytes, head: i64, names: i64, has_header: bool) -> i64:
    """The offset of the payload in the frame that begins at ``head``; *names* is the length of
    source and target."""
    at = head + HEAD_BYTES
    if data[head + 7] >= TIER_U16:
        at += 2
    at += data[head + 2] + names
    if has_header:
        low: i64 = data[at]
        at += 2 + (low | data[at + 1] << 8)
    return at - head


def _id_at(data: bytes, head: i64) -> str:
    """The message id of the frame that begins at ``head``."""
    start = head + HEAD_BYTES
    if data[head + 7] >= TIER_U16:
        start += 2
    return data[start : start + data[head + 2]].decode()


def cut_evenly(data: bytes, at: i64, length: i64, stop: i64, tails: list[bytes]) -> None:
    """Add an empty piece to ``tails``, and then, for each frame of this length from ``at`` to
    ``stop``, the bytes after its first two."""
    tails.append(b"")
    tails += [data[begin + 2 : begin + length] for begin in range(at, stop, length)]


def _with_odd(tails: list[bytes], odd: list[int], b0: int, b1: int) -> bytes:
    """Join frames with these first two bytes; those at the odd indexes get the other priority."""
    other = bytes((b0 ^ HIGH_PRIORITY, b1))
    pieces = [bytes((b0, b1))] * (2 * len(tails) - 2)
    pieces[1::2] = tails[1:]
    for place in odd:
        pieces[2 * place] = other
    return b"".join(pieces)
