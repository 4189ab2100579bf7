"""The layers that NSQ's clients may put on a connection; snappy needs packages (extra ``nsq``)."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final, final

from tmqp_wires.nsq import DeflateLayer, Layer, SnappyLayer

__all__ = ["Compression"]

#: Raw deflate: no head, no checksum (N41).
_RAW: Final = -15


@final
class Compression:
    """Creates layers; ``has_snappy`` says whether the packages for snappy are installed."""

    def __init__(self) -> None:
        self.has_snappy = find_spec("cramjam") is not None and find_spec("crc32c") is not None
        self._compress: Callable[[bytes], bytes] | None = None
        self._decompress: Callable[[bytes], bytes] | None = None
        self._crc32c: Callable[[bytes], int] | None = None

    def snappy(self) -> Layer:
        """Create a layer of snappy's framing format (N40).

        :raises ModuleNotFoundError: when a package is missing.
        """
        if self._decompress is None or self._crc32c is None:
            snappy = importlib.import_module("cramjam").snappy
            self._compress = lambda data: bytes(snappy.compress_raw(data))
            self._decompress = lambda data: bytes(snappy.decompress_raw(data))
            self._crc32c = importlib.import_module("crc32c").crc32c
        assert self._crc32c is not None, "it was imported"
        return SnappyLayer(self._compress, self._decompress, self._crc32c)

    def deflate(self, level: int) -> Layer:
        """Create a layer of raw deflate."""
        return DeflateLayer(
            zlib.compressobj(level, zlib.DEFLATED, _RAW),
            zlib.decompressobj(_RAW),
            zlib.Z_SYNC_FLUSH,
            zlib.error,
        )
