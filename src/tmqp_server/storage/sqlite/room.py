"""Free space: how much the store needs, and whether it is available.

A message is written twice: to a log and, when the log is carried, to the database.  SQLite does the
same once more with its own log.  A store that filled the disk with its logs could not be opened
again, because opening carries them.  So messages are refused while that is still possible.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tmqp.references import DATABASE_NAME
from tmqp_server.storage.port import StoreFullError
from tmqp_server.storage.sqlite.schema import (
    explained,
    free_bytes,
    size_of,
)

__all__ = ["Room"]

_MIB: Final = 1 << 20
#: What opening a store needs in addition to its logs: partly filled pages, rows, SQLite's index.
_SPARE_BYTES: Final = 1 << 20


class Room:
    """The free space of a store's directory.

    :param floor_bytes: how much of it the store leaves free.
    """

    __slots__ = ("_directory", "_floor_bytes", "_log")

    def __init__(self, directory: Path, floor_bytes: int) -> None:
        self._directory = directory
        self._floor_bytes = floor_bytes
        self._log = directory / f"{DATABASE_NAME}-wal"

    def check(self, size: int, held: int = 0) -> None:
        """Check that there is room to save messages and to open the store again afterwards.

        :param size: the bytes of the messages.
        :param held: the bytes of the recent writes that are still to be carried.
        :raises StoreFullError: when there is not enough free space.
        """
        try:  # not ``translated``: before each sync somebody waits for this
            free = free_bytes(self._directory)
            needed = 2 * size + max(self._floor_bytes, self.to_open(held))
        except OSError as error:
            raise explained(error, self._directory, "look at the free space of") from error
        if free < needed:
            raise StoreFullError(
                f"{self._directory} has {free / _MIB:.1f} MiB of free space;"
                f" saving these messages needs {needed / _MIB:.1f} MiB"
            )

    def to_open(self, held: int) -> int:
        """How many bytes must be free for the store to be opened; *held* as in :meth:`check`.

        :raises OSError: when the directory cannot be examined.
        """
        return 2 * held + size_of(self._log) + _SPARE_BYTES
