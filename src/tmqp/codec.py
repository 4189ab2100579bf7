"""Convert between bytes and frames: ``FrameDecoder`` and ``encode``.

Theory of operation.  :meth:`FrameDecoder.feed` decodes a whole chunk in one loop: it reads the head
of a frame in place, checks every limit from the head alone, and cuts the frame out.  An incomplete
frame at the end of a chunk is kept, with the number of bytes that the next step needs (``_need``):
first the eight fixed bytes, then the extended length, then everything up to the header length, then
the whole frame.  Until that many bytes have arrived, chunks are only buffered.  So each byte is
examined a bounded number of times, wherever the stream is cut, and nothing is buffered for a frame
whose head already exceeds a limit.

A program that forwards most messages can ask for runs (``makes_runs``).  A run consists of
consecutive queue messages, acknowledgements, direct messages or responses that differ only in id,
payload and headers that the program does not read.  The first becomes a frame; the others become
part of its :class:`~tmqp.runs.FrameRun`, as bytes, without an object for each.

Invalid bytes do not raise: the frames before them are returned, ``error`` is set, and the decoder
returns nothing more.  So a chunk gives the same result as the same bytes one by one.
"""

from __future__ import annotations

from typing import Final, final

from tmqp._compat import i64
from tmqp.bits import (
    HAS_HEADER,
    HEAD_BYTES,
    LARGEST_SHORT,
    PENDING_ACKNOWLEDGE,
    TIER_U16,
    TTL_BITS,
    TYPE_BITS,
)
from tmqp.constants import (
    MAX_NAME_BYTES,
    TYPE_ACKNOWLEDGE,
    TYPE_DIRECT_MESSAGE,
    TYPE_PING,
    TYPE_PONG,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
)
from tmqp.errors import AbuseError, RemoteProtocolError
from tmqp.frames import Frame
from tmqp.header_names import HeaderNames
from tmqp.limits import Limits
from tmqp.runs import FrameRun, cut_evenly, is_about_queue, of_other_priority

__all__ = ["FrameDecoder", "encode"]

#: The empty queues and odd indexes of a run; nothing is ever added.
_NONE: Final[list[int]] = []
_INTERPRETED: Final = __file__.endswith(".py")
_FEW_BYTES: Final = 16
#: The first byte value that is not ASCII.
_NOT_ASCII: Final = 128
_UNLIMITED: Final = 1 << 60
#: A longer payload, for which no memory suffices, is treated as if it had this length, so that
#: additions cannot overflow the 64 bits of a compiled integer.
_ENDLESS: Final = 1 << 62
#: The largest sum of the first two different lengths at which frames count as small.
_SMALL_PAIR_BYTES: Final = 768
#: A run keeps its whole chunk if at most the fraction 1 / 2**this of it belongs to others.
_SMALL_SHARE_BITS: Final = 3
#: Smaller pieces are collected, so that single bytes do not need an object each.
_SMALL_CHUNK_BYTES: Final = 4_096
_GATHER_BYTES: Final = 16_384


def encode(frame: Frame) -> bytes:
    """The frame's bytes in canonical form: smallest payload-length tier (F4), no empty block (F9).

    A frame that is canonical already (every frame made by :meth:`Frame.build`) is not copied.
    """
    if frame.canonical:
        return frame.raw
    return frame.replace().raw


@final
class FrameDecoder:
    """Divides a byte stream into frames.

    :param limits: limits that are checked from the head of each frame, before its body is buffered.

    Attributes: ``error`` is None, or the :class:`RemoteProtocolError` that ended decoding;
    ``makes_runs``, whether it makes runs (off by default); ``runs``, the runs among the frames that
    the last :meth:`feed` returned, which contain only the first frame of each run; ``mixes_runs``,
    whether a run may contain messages for several queues of one target and of both priorities, or
    acknowledgements for several queues; ``read_headers``, the names of headers that the forwarding
    code reads: a message that may have one of them is never in a run, and if this is None, no
    message with headers is.
    """

    __slots__ = (
        "_ascii",
        "_count",
        "_have",
        "_largest",
        "_max_block",
        "_max_body",
        "_max_name",
        "_max_payload",
        "_need",
        "_parts",
        "_seen_names",
        "_seen_source",
        "_seen_source_len",
        "_seen_target",
        "_tail",
        "_whole",
        "_odd",
        "_queues",
        "makes_runs",
        "mixes_runs",
        "error",
        "read_headers",
        "runs",
    )

    def __init__(self, limits: Limits | None = None) -> None:
        bounds = Limits() if limits is None else limits
        self.error: RemoteProtocolError | None = None
        self.makes_runs: bool = False
        self.mixes_runs: bool = False
        self.runs: list[FrameRun] = []
        self.read_headers: HeaderNames | None = None
        #: Whether all scanned bytes are ASCII; below 0 if not examined yet.
        self._ascii: i64 = -1
        #: The largest frame of the current run.
        self._largest: i64 = 0
        #: The number of its frames.
        self._count: i64 = 0
        #: Its queues, and the indexes of frames with the other priority: see ``FrameRun``.
        self._queues: list[int] = _NONE
        self._odd: list[int] = _NONE
        self._max_payload: i64 = bounds.max_payload_bytes
        self._max_block: i64 = bounds.max_header_bytes
        self._max_body: i64 = _UNLIMITED
        self._max_name: i64 = bounds.max_name_bytes
        self._parts: list[bytes] = []
        self._tail: bytearray = bytearray()
        self._have: i64 = 0
        self._need: i64 = 0
        self._whole: bool = False
        # Source and target of the last frame, as bytes and as text: see _scan.
        self._seen_names: bytes = b""
        self._seen_source_len: i64 = 0
        self._seen_source: str = ""
        self._seen_target: str = ""

    @property
    def buffered(self) -> int:
        """The number of buffered bytes: an incomplete frame, or bytes that :meth:`hold` keeps."""
        return self._have

    @property
    def wanted(self) -> int:
        """The number of bytes missing of the incomplete frame, as far as known; 0 if there is
        none."""
        return max(0, self._need - self._have) if self._have > 0 else 0

    def restrict(self, max_payload_bytes: int, max_header_bytes: int, max_body_bytes: int) -> None:
        """Set other limits for the following frames (a server does this after the hello).

        :param max_body_bytes: limit for payload and header block together.
        """
        self._max_payload = max_payload_bytes
        self._max_block = max_header_bytes
        self._max_body = max_body_bytes

    def clear(self) -> None:
        """Drop all buffered bytes, because the connection has ended."""
        self._parts = []
        self._tail = bytearray()
        self._have = 0

    def feed(self, data: bytes, most: int = _UNLIMITED) -> list[Frame]:
        """Decode the next bytes; return the frames that they complete, at most ``most``.

        A run (see ``makes_runs``) counts as one.  The bytes after the last returned frame are kept
        for the next call; ``feed(b"")`` continues with them.  Once ``error`` is set, it returns
        nothing more.
        """
        frames: list[Frame] = []
        self._ascii = -1
        if self.runs:
            self.runs = []
        # By way of a local: the compiler would take `self.error` for None ever after.
        error = self.error
        if error is not None:
            return frames
        if self._have == 0:
            self._scan(data, 0, frames, most)
            return frames
        if self._have + len(data) < self._need:
            self._put_aside(data)
            return frames
        if self._whole:
            # Complete the frame without copying what follows it: a large payload is joined once.
            missing = self._need - self._have
            left = self._scan(self._taken(data[:missing]), 0, frames, most)
            if missing < len(data) and self.error is None:
                self._scan(data, missing, frames, left)
            return frames
        self._scan(self._taken(data), 0, frames, most)
        return frames

    def hold(self, data: bytes) -> None:
        """Keep bytes undecoded for a later ``feed(b"")``; the caller bounds their number."""
        if data and self.error is None:
            if self._have == 0:
                self._need = 0
                self._whole = False
            self._put_aside(data)

    def _put_aside(self, data: bytes) -> None:
        self._have += len(data)
        if len(data) < _SMALL_CHUNK_BYTES:
            self._tail += data
            if len(self._tail) >= _GATHER_BYTES:
                self._parts.append(bytes(self._tail))
                self._tail = bytearray()
            return
        if self._tail:
            self._parts.append(bytes(self._tail))
            self._tail = bytearray()
        self._parts.append(data)

    def _taken(self, data: bytes) -> bytes:
        """Join the buffered bytes and ``data``, and empty the buffer."""
        parts = self._parts
        if self._tail:
            parts.append(bytes(self._tail))
            self._tail = bytearray()
        parts.append(data)
        self._parts = []
        self._have = 0
        return b"".join(parts)

    def _wait(self, data: bytes, pos: i64, need: i64, whole: bool) -> None:
        """Buffer ``data`` from ``pos`` on until there are ``need`` bytes."""
        rest = data[pos:]
        self._parts.append(rest)
        self._have = len(rest)
        self._need = need
        self._whole = whole

    def _fail(self, error: RemoteProtocolError) -> i64:
        """End decoding; return 0, the number of further frames that may be decoded."""
        self.error = error
        self.clear()
        return 0

    def _scan(self, data: bytes, pos: i64, frames: list[Frame], most: i64) -> i64:
        """Cut frames out of ``data`` from ``pos`` on; return how many more may be decoded."""
        end: i64 = len(data)
        last = end - HEAD_BYTES
        max_payload = self._max_payload
        short_names = self._max_name < MAX_NAME_BYTES
        # Source and target are mostly those of the previous frame.  Then their texts are shared:
        # one comparison instead of two decodings saves 40 % of the time (a quarter interpreted),
        # and a quarter of the memory that a message of 100 bytes takes in a queue.
        seen_names, seen_source_len = self._seen_names, self._seen_source_len
        source, target = self._seen_source, self._seen_target
        try:
            while pos <= last and most > 0:
                size: i64 = data[pos + 7]
                at = pos + HEAD_BYTES
                if size > LARGEST_SHORT:
                    wide: i64 = 1 << (size - LARGEST_SHORT)  # 2, 4 or 8 (F4)
                    if at + wide > end:
                        self._wait(data, pos, HEAD_BYTES + wide, False)
                        return most
                    size = self._wide_size(data, at, wide)
                    if size < 0:
                        return 0
                    at += wide
                if size > max_payload:
                    return self._fail(_payload_too_large(size, max_payload))
                # Before the header block, whose length may be missing: the result must not depend
                # on how the stream was cut.
                if short_names and self._names_fault(data, pos):
                    return 0
                source_at = at + data[pos + 2]
                source_len: i64 = data[pos + 3]
                names_end = source_at + source_len + data[pos + 4]
                body = names_end
                if data[pos + 1] & HAS_HEADER and _takes_header(data[pos] & TYPE_BITS):
                    body += 2
                    if body > end:
                        self._wait(data, pos, body - pos, False)
                        return most
                    block: i64 = data[names_end] | data[names_end + 1] << 8
                    if block > self._max_block or size > self._max_body - block:
                        most_block = min(self._max_block, self._max_body)
                        return self._fail(_block_too_large(block, most_block))
                    body += block
                if size > end - body:
                    self._wait(data, pos, body - pos + size, True)
                    return most
                names = data[source_at:names_end]
                if source_len != seen_source_len or names != seen_names:
                    source, target = names[:source_len].decode(), names[source_len:].decode()
                    self._see(names, source_len, source, target)
                    seen_names, seen_source_len = names, source_len
                message_id = data[at:source_at].decode()
                if body > names_end:
                    data[names_end + 2 : body].decode()
                stop = body + size
                # A compiled slice always copies: avoid it for a large payload alone in its chunk.
                raw = data[pos:stop] if pos > 0 or stop < end else data
                frames.append(Frame(raw, message_id, source, target, body - pos))
                pos = self._scan_run(data, pos, stop, names, frames) if self.makes_runs else stop
                most -= 1
        except UnicodeDecodeError:
            return self._fail(
                RemoteProtocolError("utf8", "message id, source, target or headers are not UTF-8")
            )
        if pos < end:
            self._wait(data, pos, HEAD_BYTES if most > 0 else 0, False)
        return most

    def _scan_run(
        self, data: bytes, first: i64, pos: i64, names: bytes, frames: list[Frame]
    ) -> i64:
        """Make a run of the last frame in ``frames``, which begins at ``first``, and all similar
        ones that follow at ``pos``; return where the run ends.

        Anything unusual ends the run, and is decoded in the general way.
        """
        if pos == len(data):
            return pos
        b0: i64 = data[first]
        b1: i64 = data[first + 1]
        block = frames[-1].header_block if b1 & HAS_HEADER else b""
        kind = b0 & TYPE_BITS
        if kind == TYPE_QUEUE_MESSAGE:
            if b1 & ~(PENDING_ACKNOWLEDGE | TTL_BITS | HAS_HEADER):
                return pos
        elif kind == TYPE_ACKNOWLEDGE:
            if b1 & ~TTL_BITS:
                return pos
        elif kind != TYPE_DIRECT_MESSAGE and kind != TYPE_RESPONSE:
            return pos
        if b1 & HAS_HEADER and not self._is_passed_on(block, 0, len(block)):
            return pos
        if b1 & TTL_BITS == 0 or data[first + 2] == 0 or data[first + 7] > TIER_U16:
            return pos
        begin = pos
        tails: list[bytes] = []
        starts: list[int] = []
        self._largest = pos - first
        self._count = 1
        self._queues = _NONE
        self._odd = _NONE
        if _INTERPRETED and not b1 & HAS_HEADER:
            pos = self._gather_same_heads(data, first, pos, names)
        pos = self._gather(data, first, pos, begin - first, names, block, tails, starts)
        if pos > begin:
            piece, offset = b"", 0
            if not tails:
                piece, offset = data, first
                if pos - first < len(data) - (len(data) >> _SMALL_SHARE_BITS):
                    piece, offset = data[first:pos], 0
            self.runs.append(
                FrameRun(
                    frames[-1],
                    len(frames) - 1,
                    self._count,
                    tails,
                    starts,
                    piece,
                    offset,
                    pos - first,
                    self._largest,
                    self._queues,
                    self._odd,
                )
            )
        return pos

    def _is_passed_on(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether a header block is ASCII, and has no header that a forwarder reads."""
        names = self.read_headers
        return names is not None and names.are_absent(data, start, stop)

    def _pass_block(self, data: bytes, at: i64, end: i64, size: i64, block: bytes) -> i64:
        """Return the end of the header block at ``at`` of a message with this payload size; -1 if
        the message cannot be in a run, because the block is incomplete, too large, or may have a
        header that the program reads."""
        body = at + 2
        if body > end:
            return -1
        low: i64 = data[at]  # in a local: otherwise the compiler calls functions for | and <<
        high: i64 = data[at + 1]
        length = low | high << 8
        stop = body + length
        if length > self._max_block or size > self._max_body - length or stop > end:
            return -1
        if length == len(block) and data[body:stop] == block:
            return stop
        return stop if self._is_passed_on(data, body, stop) else -1

    def _gather(
        self,
        data: bytes,
        first: i64,
        pos: i64,
        length: i64,
        names: bytes,
        block: bytes,
        tails: list[bytes],
        starts: list[int],
    ) -> i64:
        """Find the end of the frames from ``pos`` on that are similar to the first one, which has
        this length and header block; if they differ in length, put all into ``tails`` or
        ``starts``."""
        end: i64 = len(data)
        b0: i64 = data[first]
        b1: i64 = data[first + 1]
        source_len: i64 = data[first + 3]
        target_len: i64 = data[first + 4]
        # Each byte has a local of 64 bits, because the compiler would make a Python integer of an
        # indexed one for | and <<, which costs a tenth of the loop.
        queue_low: i64 = data[first + 5]
        queue_high: i64 = data[first + 6]
        mixed = False
        has_queue = is_about_queue(b0)
        odd_kind = of_other_priority(b0)
        has_header = b1 & HAS_HEADER != 0
        max_payload, max_name = self._max_payload, self._max_name
        while pos <= end - HEAD_BYTES:
            kind: i64 = data[pos]
            low: i64 = data[pos + 5]
            high: i64 = data[pos + 6]
            if kind != b0 or ((low != queue_low or high != queue_high) and has_queue):
                if not self.mixes_runs or (kind != b0 and kind != odd_kind):
                    break
                mixed = True
            if data[pos + 1] != b1 or data[pos + 3] != source_len or data[pos + 4] != target_len:
                break
            size: i64 = data[pos + 7]
            id_at = pos + HEAD_BYTES
            if size >= TIER_U16:
                id_at += 2
                if size > TIER_U16 or id_at > end:
                    break
                size = data[pos + 8] | data[pos + 9] << 8
            id_len: i64 = data[pos + 2]
            names_at = id_at + id_len
            names_end = names_at + len(names)
            body = names_end
            if has_header:
                body = self._pass_block(data, names_end, end, size, block)
                if body < 0:
                    break
            stop = body + size
            if stop > end or size > max_payload or id_len > max_name or id_len == 0:
                break
            if data[names_at:names_end] != names or not (
                self._ascii == 1 or self._is_text(data, id_at, names_at)
            ):
                break
            if mixed:
                queue = queue_low | queue_high << 8
                self._mix(self._count, queue, low | high << 8, kind != b0)
            if stop - pos != length or tails or starts:
                self._add(data, first, pos, stop, length, tails, starts)
            self._count += 1
            pos = stop
        return pos

    def _add(
        self,
        data: bytes,
        first: i64,
        pos: i64,
        stop: i64,
        length: i64,
        tails: list[bytes],
        starts: list[int],
    ) -> None:
        """Add a frame to the run that begins at ``first``, whose frames have several lengths.
        Small frames are cut out; for large ones only the positions are noted, because allocating
        pieces of many sizes takes longer than copying them."""
        self._largest = max(self._largest, stop - pos)
        if not (tails or starts):
            if stop - pos + length < _SMALL_PAIR_BYTES:
                cut_evenly(data, first, length, pos, tails)
            else:
                starts += range(0, pos - first, length)
        if tails:
            tails.append(data[pos + 2 : stop])
        else:
            starts.append(pos - first)

    def _mix(self, place: i64, first: i64, queue: i64, is_odd: bool) -> None:
        """Note the queue of the next message of a run, and whether it has the other priority.

        :param place: its index in the run, whose first message has the queue ``first``.
        """
        if self._queues:
            self._queues.append(queue)
        elif queue != first:
            self._queues = [int(first)] * place
            self._queues.append(queue)
        if is_odd and self._odd:
            self._odd.append(place)
        elif is_odd:
            self._odd = [place]

    def _gather_same_heads(self, data: bytes, first: i64, pos: i64, names: bytes) -> i64:
        """Do as :meth:`_gather` for frames with the same head, whose parts have the same positions.

        One comparison is faster than one for each byte only in interpreted code.
        """
        tier: i64 = data[first + 7]
        if tier > TIER_U16:
            return pos
        head_len: i64 = HEAD_BYTES + 2 if tier == TIER_U16 else HEAD_BYTES
        head = data[first : first + head_len]
        length = pos - first
        names_from = head_len + data[first + 2]
        names_to = names_from + len(names)
        last = len(data) - length
        plain = False
        while pos <= last:
            if data[pos : pos + head_len] != head:
                break
            if data[pos + names_from : pos + names_to] != names:
                break
            if not plain:
                if not self._is_text(data, pos + head_len, pos + names_from):
                    break
                plain = self._ascii == 1
            pos += length
            self._count += 1
        return pos

    def _is_text(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether a part of the scanned bytes is certainly ASCII.  The scanned bytes are checked as
        a whole first: they are ASCII if no length or payload has a byte of 128 or more."""
        if self._ascii < 0:
            self._ascii = 1 if data.isascii() else 0
        if self._ascii == 1:
            return True
        if _INTERPRETED or stop - start > _FEW_BYTES:
            return data[start:stop].isascii()
        # In compiled code, examining a few bytes is faster than making an object of them.
        seen: i64 = 0
        for at in range(start, stop):
            byte: i64 = data[at]
            seen |= byte
        return seen < _NOT_ASCII

    def _see(self, names: bytes, source_len: i64, source: str, target: str) -> None:
        self._seen_names = names
        self._seen_source_len = source_len
        self._seen_source = source
        self._seen_target = target

    def _wide_size(self, data: bytes, at: i64, wide: i64) -> i64:
        """Read the payload length after a head (F4); return -1 if it was refused."""
        if wide == 2:
            low: i64 = data[at]
            return low | data[at + 1] << 8
        # Compared as a Python integer: eight bytes may hold more than the compiled one.
        size: int = int.from_bytes(data[at : at + wide], "little")
        most: int = self._max_payload
        if size > most:
            self._fail(_payload_too_large(size, most))
            return -1
        return min(size, _ENDLESS)

    def _names_fault(self, data: bytes, pos: i64) -> bool:
        longest = max(data[pos + 2], data[pos + 3], data[pos + 4])
        if longest <= self._max_name:
            return False
        self._fail(
            AbuseError(
                "name-limit",
                f"message id, source or target of {longest} bytes, at most {self._max_name}",
            )
        )
        return True


def _takes_header(message_type: int) -> bool:
    """Whether the has-header bit of a type means a header block; for ping and pong, it is part of
    the time to live (F10)."""
    return message_type != TYPE_PING and message_type != TYPE_PONG


def _payload_too_large(size: int, most: int) -> AbuseError:
    return AbuseError("payload-limit", f"payload of {size} bytes announced, at most {most}")


def _block_too_large(size: int, most: int) -> AbuseError:
    return AbuseError("header-limit", f"header block of {size} bytes announced, at most {most}")
