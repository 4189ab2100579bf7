"""Chooses the implementation of checksums: ``isal`` if it is installed, otherwise the standard
library.

A block's CRC-32 covers every byte that is read. zlib computes it at 1 to 4 GB/s, which takes as
long as everything else that is done with a message of 100 bytes here; Intel's ISA-L at 30 to 50
GB/s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from zlib import crc32 as _portable

try:
    from isal.isal_zlib import crc32 as _quick
except ImportError:  # not built for every machine
    _quick = _portable

__all__ = ["crc32"]

#: The CRC-32 of some bytes, behind others whose CRC-32 is the second argument.
crc32: Final[Callable[..., int]] = _quick
