"""Owns the way between bytes and frames: ``FrameDecoder`` and ``encode``.

Theory of operation.  :meth:`FrameDecoder.feed` works a whole chunk off in one loop: it reads a head
where it stands, checks every limit from the head alone, and cuts the frame out.  What is left over
at the end of a chunk is kept together with the number of bytes without which nothing can be said
(``_need``): first the eight fixed bytes, then the extended length, then everything up to the header
length, then the whole frame.  Until that many have come, a chunk is only put aside, so each byte is
looked at a bounded number of times however the stream is cut, and nothing is put aside for a frame
whose head already breaks a limit.

A fault does not raise: the frames before it are returned, ``error`` tells what was wrong, and the
decoder takes no more.  So one chunk gives the same answer as the same bytes one by one.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import MAX_NAME_BYTES, TYPE_PING, TYPE_PONG
from tmqp.errors import AbuseError, RemoteProtocolError
from tmqp.frames import Frame
from tmqp.limits import Limits

__all__ = ["FrameDecoder", "encode"]

_HEAD_BYTES: Final = 8
_HAS_HEADER: Final = 0x20
_UNLIMITED: Final = 1 << 60
#: Smaller pieces are gathered, so that a drip of single bytes does not cost an object each.
_SMALL_CHUNK_BYTES: Final = 4_096
_GATHER_BYTES: Final = 65_536


def encode(frame: Frame) -> bytes:
    """The frame's bytes in canonical form: smallest payload-length tier (F4), no empty block (F9).

    A frame that is canonical already (every frame made by :meth:`Frame.build`) is not copied.
    """
    if frame.canonical:
        return frame.raw
    return frame.replace().raw


@final
class FrameDecoder:
    """Cuts a byte stream into frames.

    :param limits: bounds checked from each head, before anything of the body is buffered.

    Attributes: ``error`` is None, or the :class:`RemoteProtocolError` that ended decoding.
    """

    __slots__ = (
        "_have",
        "_max_block",
        "_max_body",
        "_max_name",
        "_max_payload",
        "_need",
        "_parts",
        "_tail",
        "_whole",
        "error",
    )

    def __init__(self, limits: Limits | None = None) -> None:
        bounds = Limits() if limits is None else limits
        self.error: RemoteProtocolError | None = None
        self._max_payload: int = bounds.max_payload_bytes
        self._max_block: int = bounds.max_header_bytes
        self._max_body: int = _UNLIMITED
        self._max_name: int = bounds.max_name_bytes
        self._parts: list[bytes] = []
        self._tail: bytearray = bytearray()
        self._have: int = 0
        self._need: int = 0
        self._whole: bool = False

    @property
    def buffered(self) -> int:
        """Bytes kept from earlier chunks: the beginning of a frame, or what was held back."""
        return self._have

    def restrict(self, max_payload_bytes: int, max_header_bytes: int, max_body_bytes: int) -> None:
        """Set other bounds from the next frame on (a server does before and after the hello).

        :param max_body_bytes: bound of payload and header block together.
        """
        self._max_payload = max_payload_bytes
        self._max_block = max_header_bytes
        self._max_body = max_body_bytes

    def clear(self) -> None:
        """Forget everything put aside: the connection is over."""
        self._parts = []
        self._tail = bytearray()
        self._have = 0

    def feed(self, data: bytes, most: int = _UNLIMITED) -> list[Frame]:
        """Take the next bytes and return the frames they complete, at the most ``most`` of them.

        What lies behind the last frame returned is kept for the next call; ``feed(b"")`` asks for
        it.  After a fault (see ``error``) nothing more is returned.
        """
        frames: list[Frame] = []
        if self.error is not None:
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
            self._put_aside(data[:missing])
            left = self._scan(self._taken(), 0, frames, most)
            if missing < len(data) and self.error is None:
                self._scan(data, missing, frames, left)
            return frames
        self._put_aside(data)
        self._scan(self._taken(), 0, frames, most)
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

    def _taken(self) -> bytes:
        """Everything put aside, as one string; nothing is left."""
        parts = self._parts
        if self._tail:
            parts.append(bytes(self._tail))
            self._tail = bytearray()
        self._parts = []
        self._have = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _wait(self, data: bytes, pos: int, need: int, whole: bool) -> None:
        """Keep ``data`` from ``pos`` until ``need`` bytes of it are there."""
        rest = data[pos:]
        self._have = 0
        self._need = need
        self._whole = whole
        if rest:
            self._put_aside(rest)

    def _fail(self, error: RemoteProtocolError) -> None:
        self.error = error
        self.clear()

    def _scan(self, data: bytes, pos: int, frames: list[Frame], most: int) -> int:
        """Cut frames out of ``data`` from ``pos`` on; return how many more may be taken."""
        end = len(data)
        try:
            while most > 0 and end - pos >= _HEAD_BYTES:
                size: int = data[pos + 7]
                at = pos + _HEAD_BYTES
                if size > 252:
                    wide = 1 << (size - 252)  # 253, 254, 255: two, four, eight bytes (F4)
                    if end < at + wide:
                        self._wait(data, pos, _HEAD_BYTES + wide, False)
                        return most
                    size = int.from_bytes(data[at : at + wide], "little")
                    at += wide
                if size > self._max_payload:
                    self._fail(_payload_too_large(size, self._max_payload))
                    return 0
                id_len: int = data[pos + 2]
                source_len: int = data[pos + 3]
                target_len: int = data[pos + 4]
                names_end = at + id_len + source_len + target_len
                body = names_end
                # Before the header block, whose length may not have come: the verdict must not
                # depend on how the stream was cut.
                if self._max_name < MAX_NAME_BYTES and self._names_fault(
                    id_len, source_len, target_len
                ):
                    return 0
                if data[pos + 1] & _HAS_HEADER and _takes_header(data[pos] & 0x3F):
                    body += 2
                    if body > end:
                        self._wait(data, pos, body - pos, False)
                        return most
                    block: int = data[names_end] | data[names_end + 1] << 8
                    if block > self._max_block or block + size > self._max_body:
                        self._fail(_block_too_large(block, min(self._max_block, self._max_body)))
                        return 0
                    body += block
                stop = body + size
                if stop > end:
                    self._wait(data, pos, stop - pos, True)
                    return most
                names = data[at:names_end].decode("utf-8")
                if len(names) != names_end - at:
                    _check_apart(data, at, at + id_len, at + id_len + source_len, names_end)
                    names = ""
                if body > names_end + 2:
                    data[names_end + 2 : body].decode("utf-8")
                frames.append(Frame(data[pos:stop], names, at - pos, body - pos))
                pos = stop
                most -= 1
        except UnicodeDecodeError:
            self._fail(
                RemoteProtocolError("utf8", "message id, source, target or headers are not UTF-8")
            )
            return 0
        if pos < end:
            self._wait(data, pos, _HEAD_BYTES if most > 0 else 0, False)
        return most

    def _names_fault(self, id_len: int, source_len: int, target_len: int) -> bool:
        longest = max(id_len, source_len, target_len)
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
    """Ping and pong read the has-header bit as part of their time to live (F10)."""
    return message_type != TYPE_PING and message_type != TYPE_PONG


def _check_apart(data: bytes, at: int, source_at: int, target_at: int, end: int) -> None:
    """Each name must be UTF-8 by itself: a character may not begin in one and end in the next."""
    data[at:source_at].decode("utf-8")
    data[source_at:target_at].decode("utf-8")
    data[target_at:end].decode("utf-8")


def _payload_too_large(size: int, most: int) -> AbuseError:
    return AbuseError("payload-limit", f"payload of {size} bytes announced, at most {most}")


def _block_too_large(size: int, most: int) -> AbuseError:
    return AbuseError("header-limit", f"header block of {size} bytes announced, at most {most}")
