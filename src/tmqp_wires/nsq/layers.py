"""Compression of a connection: snappy's framing format and raw deflate (N40, N41).

A layer decodes received bytes and encodes bytes to send; each write is complete in itself, in one
piece (N43).  The caller passes the compressor in: ``zlib`` for deflate, any snappy library and a
CRC-32C for snappy.  ``None`` as snappy's compressor sends everything uncompressed, which the format
allows.

A peer must not expand a few bytes without limit: inflated data are at most a hundred times the
received bytes, plus ``SLACK_BYTES``, which a single message of zeros may need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from tmqp_wires._compat import mypyc_attr

__all__ = [
    "MAX_GROWTH",
    "SLACK_BYTES",
    "DeflateLayer",
    "Deflater",
    "Inflater",
    "Layer",
    "LayerError",
    "SnappyLayer",
]

#: Inflated data may have so many times the received bytes.
MAX_GROWTH: Final = 100
#: And so many bytes more.
SLACK_BYTES: Final = 2_097_152

_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED: Final = 0x00
_PLAIN: Final = 0x01
_FIRST_SKIPPED: Final = 0x80
_IDENTIFIER: Final = 0xFF
_HEAD_BYTES: Final = 4
_CRC_BYTES: Final = 4
#: Most bytes of a chunk, inflated; compressed it may be a little larger.
_CHUNK_BYTES: Final = 65_536
_MOST_COMPRESSED: Final = 76_490
_CRC_MASK: Final = 0xA282EAD8
_UINT32: Final = 0xFFFFFFFF


class LayerError(ValueError):
    """Received bytes are invalid for the layer, or would become too large."""


class Deflater(Protocol):
    """A compressor, as from ``zlib.compressobj``."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress bytes; the result may be incomplete."""

    def flush(self, mode: int = ..., /) -> bytes:
        """The rest of the compressed bytes."""


class Inflater(Protocol):
    """A decompressor, as from ``zlib.decompressobj``."""

    @property
    def eof(self) -> bool:
        """Whether the compressed data have ended, which must not happen on a connection."""

    def decompress(self, data: bytes, /, max_length: int = ...) -> bytes:
        """Decompress bytes, to at most *max_length* bytes."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Layer:
    """Encodes and decodes the bytes of a connection."""

    def __init__(self) -> None:
        self._room = SLACK_BYTES

    def decoded(self, data: bytes) -> bytes:
        """Decode received bytes.

        :raises LayerError: when they are invalid; the layer cannot be used any more.
        """
        raise NotImplementedError

    def encoded(self, data: bytes) -> bytes:
        """Encode bytes to send, so that the peer can read all of them at once."""
        raise NotImplementedError

    @property
    def held_bytes(self) -> int:
        """Received bytes that cannot be decoded yet."""
        return 0

    def _take(self, size: int) -> None:
        """Count inflated bytes against the limit."""
        self._room -= size
        if self._room < 0:
            raise LayerError(f"it inflates to more than {MAX_GROWTH} times its size")


class DeflateLayer(Layer):
    """Raw deflate, flushed with each write.

    :param deflater: ``zlib.compressobj(level, zlib.DEFLATED, -15)``
    :param inflater: ``zlib.decompressobj(-15)``
    :param sync_flush: ``zlib.Z_SYNC_FLUSH``
    :param error: what the inflater raises: ``zlib.error``
    """

    def __init__(
        self, deflater: Deflater, inflater: Inflater, sync_flush: int, error: type[Exception]
    ) -> None:
        super().__init__()
        self._deflater = deflater
        self._inflater = inflater
        self._sync_flush = sync_flush
        self._error = error

    def decoded(self, data: bytes) -> bytes:
        """Inflate received bytes."""
        self._room += MAX_GROWTH * len(data)
        try:
            found = self._inflater.decompress(data, max_length=self._room + 1)
        except self._error as error:
            raise LayerError(f"it is not deflated data: {error}") from None
        self._take(len(found))
        if self._inflater.eof:
            raise LayerError("the deflated data have ended")
        return found

    def encoded(self, data: bytes) -> bytes:
        """Deflate bytes to send."""
        return self._deflater.compress(data) + self._deflater.flush(self._sync_flush)


class SnappyLayer(Layer):
    """Snappy's framing format.

    :param compress: compresses one block, without framing; None to send everything uncompressed.
    :param decompress: decompresses a block; it may raise any exception.
    :param crc32c: the CRC-32C (Castagnoli) of bytes.
    """

    def __init__(
        self,
        compress: Callable[[bytes], bytes] | None,
        decompress: Callable[[bytes], bytes],
        crc32c: Callable[[bytes], int],
    ) -> None:
        super().__init__()
        self._compress = compress
        self._decompress = decompress
        self._crc32c = crc32c
        self._begun = False
        self._greeted = False
        self._rest = b""
        self._skip = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of an incomplete chunk."""
        return len(self._rest)

    def encoded(self, data: bytes) -> bytes:
        """Encode bytes to send as chunks, with the stream's identifier before the first one
        (N40)."""
        parts: list[bytes] = []
        if not self._begun:
            self._begun = True
            parts.append(_STREAM)
        for at in range(0, len(data), _CHUNK_BYTES):
            plain = data[at : at + _CHUNK_BYTES]
            kind = _PLAIN
            written = plain
            if self._compress is not None:
                smaller = self._compress(plain)
                if len(smaller) < len(plain) - len(plain) // 8:
                    kind = _COMPRESSED
                    written = smaller
            size = _CRC_BYTES + len(written)
            parts.append(bytes((kind, size & 0xFF, size >> 8 & 0xFF, size >> 16)))
            parts.append(self._checksum(plain).to_bytes(_CRC_BYTES, "little"))
            parts.append(written)
        return b"".join(parts)

    def decoded(self, data: bytes) -> bytes:
        """Decode the complete chunks."""
        self._room += MAX_GROWTH * len(data)
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        if self._rest:
            data = self._rest + data
        found: list[bytes] = []
        at = 0
        while len(data) - at >= _HEAD_BYTES:
            kind = data[at]
            size = data[at + 1] | data[at + 2] << 8 | data[at + 3] << 16
            self._check(kind, size)
            at += _HEAD_BYTES
            if len(data) - at < size:
                if kind < _FIRST_SKIPPED or kind == _IDENTIFIER:
                    at -= _HEAD_BYTES
                else:  # what is skipped is not kept either
                    self._skip = size - (len(data) - at)
                    at = len(data)
                break
            if kind <= _PLAIN:
                found.append(self._chunk(kind, data[at : at + size]))
            elif kind == _IDENTIFIER:
                if data[at : at + size] != _STREAM[_HEAD_BYTES:]:
                    raise LayerError("the identifier is not that of a snappy stream")
                self._greeted = True
            at += size
        self._rest = data[at:]
        return b"".join(found)

    def _check(self, kind: int, size: int) -> None:
        """Check the head of a chunk before anything of it is kept."""
        if not self._greeted and kind != _IDENTIFIER:
            raise LayerError("the stream does not begin with snappy's identifier")
        if kind == _IDENTIFIER:
            fits = size == len(_STREAM) - _HEAD_BYTES
        elif kind == _PLAIN:
            fits = _CRC_BYTES <= size <= _CRC_BYTES + _CHUNK_BYTES
        elif kind == _COMPRESSED:
            fits = _CRC_BYTES < size <= _CRC_BYTES + _MOST_COMPRESSED
        elif kind < _FIRST_SKIPPED:
            raise LayerError(f"a chunk of the unknown kind {kind}")
        else:
            fits = True
        if not fits:
            raise LayerError(f"a chunk of the kind {kind} has {size} bytes")

    def _chunk(self, kind: int, chunk: bytes) -> bytes:
        plain = chunk[_CRC_BYTES:]
        if kind == _COMPRESSED:
            size = _plain_size(plain)
            if size > _CHUNK_BYTES:
                raise LayerError(f"a chunk inflates to {size} bytes")
            self._take(size)
            try:
                plain = bytes(self._decompress(plain))
            except Exception as error:  # noqa: BLE001 - whatever the library raises for bad data
                raise LayerError(f"a chunk cannot be inflated: {error}") from None
        else:
            self._take(len(plain))
        if self._checksum(plain) != int.from_bytes(chunk[:_CRC_BYTES], "little"):
            raise LayerError("the checksum of a chunk is wrong")
        return plain

    def _checksum(self, plain: bytes) -> int:
        """The masked checksum of the format."""
        crc = self._crc32c(plain)
        return (((crc >> 15) | (crc << 17)) + _CRC_MASK) & _UINT32


def _plain_size(block: bytes) -> int:
    """The decompressed size in front of a compressed block, seven bits in each byte.

    :raises LayerError: when the size is invalid.
    """
    size = 0
    for place in range(min(5, len(block))):
        byte = block[place]
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise LayerError("a chunk has no size")
