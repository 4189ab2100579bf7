"""What connections read into, before the bytes are copied out in their true size."""

from __future__ import annotations

import threading
from typing import Final

__all__ = ["READ_BYTES", "ReadBuffer"]

#: The most bytes of one read.
READ_BYTES: Final = 65_536


class ReadBuffer(threading.local):
    """The buffer into which all connections of a thread read; received bytes are copied out
    immediately.

    A socket that makes the bytes itself asks for 64 KiB and gives back what it does not fill.  With
    1,000 connections these gaps doubled the process's memory.
    """

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_BYTES))
