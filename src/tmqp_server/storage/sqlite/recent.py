"""The file of the log of recent writes: appended to, synced, and restarted from its beginning.

Theory of operation.  The file grows in steps, with zeros that are synced, and is overwritten from
its beginning when the log restarts: so a write changes only existing bytes, and its sync is one
request to the disk.

*A failed write never comes back.* When writing or syncing fails, it is unknown which part is on
disk.  Nothing is written after it: a small empty write replaces it immediately or, if that fails
too, before anything else.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Final

from tmqp_server.engine.model.histograms import SHORT_BOUNDS_US, Histogram
from tmqp_server.storage.port import StoreBatch
from tmqp_server.storage.sqlite.schema import size_of, sync_directory
from tmqp_server.storage.writes import encode_write

__all__ = ["LOG_NAME", "RecentLog"]

LOG_NAME: Final = "recent.log"
#: By how many bytes the file grows at a time.
_STEP: Final = 1 << 20


class RecentLog:
    """The log of a directory, a file of at most ``size`` bytes; ``syncs`` records how long syncs
    took.
    """

    __slots__ = ("_end", "_file", "_length", "_owed", "_turn", "directory", "size", "syncs")

    def __init__(self, directory: Path, size: int) -> None:
        self.directory = directory
        self.size = size
        self.syncs = Histogram(SHORT_BOUNDS_US)
        self._file = -1
        self._length = 0
        self._end = 0
        self._turn = b""
        #: The number of a failed write that is not overwritten yet; 0 if there is none.
        self._owed = 0

    def read(self) -> bytes:
        """Read the whole file; empty if there is none.

        :raises OSError: when it cannot be read.
        """
        try:
            return (self.directory / LOG_NAME).read_bytes()
        except FileNotFoundError:
            return b""

    def exists(self) -> bool:
        """Whether there is a file."""
        return (self.directory / LOG_NAME).exists()

    def make(self) -> None:
        """Create the file if there is none, so that its loss would be noticed later.

        :raises OSError: when it cannot be created.
        """
        if self._file < 0:
            self._open()

    def length(self) -> int:
        """The size of the file; 0 if there is none.

        :raises OSError: when it cannot be examined.
        """
        return size_of(self.directory / LOG_NAME)

    def begin(self, turn: bytes) -> None:
        """Restart the log at the beginning of the file; its writes must not be needed any more."""
        self._turn = turn
        self._end = 0
        self._owed = 0

    @property
    def turn(self) -> bytes:
        """The current turn of the log."""
        return self._turn

    @property
    def owes(self) -> bool:
        """Whether a failed write must still be overwritten (:meth:`heal`)."""
        return self._owed != 0

    def fits(self, size: int) -> bool:
        """Whether a write of this size fits into the file."""
        return self._end + size <= self.size

    def append(self, data: bytes, number: int) -> None:
        """Append a write, and sync it.

        :raises OSError: when it fails; :attr:`owes` says whether a part of it may be in the file.
        """
        assert not self._owed, "what failed is written over first"
        self._grow(self._end + len(data))
        self._owed = number
        self._put(data)
        self._end += len(data)
        self._owed = 0

    def heal(self) -> None:
        """Overwrite a failed write, if there is one.

        :raises OSError: when it fails.
        """
        if self._owed:
            data = encode_write(self._owed, self._turn, 0, StoreBatch())
            self._grow(self._end + len(data))
            self._put(data)
            self._end += len(data)
            self._owed = 0

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _put(self, data: bytes) -> None:
        self._write(data, self._end)
        began_s = time.monotonic()
        os.fdatasync(self._file)
        self.syncs.observe(time.monotonic() - began_s)

    def _grow(self, end: int) -> None:
        if self._file < 0:
            self._open()
        if end > self._length:
            step = max(-(-(end - self._length) // _STEP) * _STEP, 1)
            self._write(bytes(min(step, max(self.size, end) - self._length)), self._length)
            os.fsync(self._file)
            self._length = os.fstat(self._file).st_size

    def _open(self) -> None:
        path = self.directory / LOG_NAME
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            length = os.fstat(file).st_size
            if not length:
                sync_directory(self.directory)
        except BaseException:
            os.close(file)
            raise
        self._file, self._length = file, length

    def _write(self, data: bytes, at: int) -> None:
        done = os.pwrite(self._file, data, at)
        while done < len(data):
            more = os.pwrite(self._file, data[done:], at + done)
            if not more:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done += more
