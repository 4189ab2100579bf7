"""The buffer that connections read into, before the bytes are copied out in their actual size."""

from __future__ import annotations

import threading
from typing import Final

__all__ = ["READ_BYTES", "ReadBuffer"]

#: The most bytes of one read: a hundred messages of 1 KB.
READ_BYTES: Final = 131_072


class ReadBuffer(threading.local):
    """The buffer into which all connections of a thread read; received bytes are copied out
    immediately.

    If a socket allocates the bytes itself, it requests the largest size and then returns the unused
    part.  With 1,000 connections, these gaps doubled the process's memory.
    """

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_BYTES))
