"""What connections read into, before the bytes are copied out in their true size."""

from __future__ import annotations

import threading
from typing import Final

__all__ = ["READ_BYTES", "ReadBuffer"]

#: What is read at most at once: a hundred messages of 1 KB.
READ_BYTES: Final = 131_072


class ReadBuffer(threading.local):
    """The buffer into which all connections of a thread read; received bytes are copied out
    immediately.

    A socket that makes the bytes itself asks for the most and gives back what it does not fill.
    With 1,000 connections these gaps doubled the process's memory.
    """

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_BYTES))
