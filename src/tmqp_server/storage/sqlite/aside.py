"""The folder of bodies that are staged for transactions: one file for each body, until its commit.

Theory of operation.  A transaction ends with the process, so its staged bodies need not survive:
nothing here is synced, and all files are deleted when a store is opened.  A commit copies the
bodies into the database, in the transaction that saves its mark; then the files are deleted.  Each
has a head with its size and checksum, so a body that the disk has damaged is not committed.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from zlib import crc32

from tmqp_server.storage.port import (
    DamageError,
    Portion,
    StagedBody,
    StoreBatch,
    StoreError,
)
from tmqp_server.storage.sqlite.schema import create_private, translated

__all__ = ["ASIDE_NAME", "Aside"]

#: The folder in the data directory.
ASIDE_NAME: Final = "staged"
_HEAD: Final = struct.Struct("<4sIQ")
_MAGIC: Final = b"TMQS"


class Aside:
    """The staged bodies in a data directory, by number."""

    __slots__ = ("_directory", "_folder", "_is_made")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._folder = directory / ASIDE_NAME
        self._is_made = False

    def clear(self) -> None:
        """Delete the bodies that an earlier process has left; nothing can refer to them any more.

        :raises OSError: when they cannot be deleted.
        """
        if not self._is_made and self._folder.exists():
            shutil.rmtree(self._folder)

    @contextmanager
    def around(self, batch: StoreBatch) -> Iterator[None]:
        """Stage the bodies of a batch before the caller writes the batch, and delete dropped ones
        after it.

        :raises StoreError: as :meth:`put`; if the write fails, the staged bodies are deleted.
        """
        self.put(batch.staged)
        try:
            yield
        except BaseException:
            self.drop(batch.staged)
            raise
        self.drop(batch.dropped)

    @contextmanager
    def loaded(self, portion: Portion) -> Iterator[None]:
        """Load the staged body of a portion, if it has one, and release it at the end.

        :raises StoreError: as :meth:`get`.
        """
        if portion.staging:
            portion.load(self.get(portion.staging))
        yield
        if portion.staging:
            portion.load(b"")

    def put(self, staged: Mapping[int, StagedBody]) -> None:
        """Stage bodies, all or none.

        :raises StoreFullError: when there is no room.
        :raises StoreError: when it fails for another reason.
        """
        try:
            with translated(self._directory, "put messages of a transaction aside in"):
                if staged and not self._is_made:
                    self._folder.mkdir(mode=0o700, exist_ok=True)
                    self._is_made = True
                for number, each in staged.items():
                    body = each.body()
                    head = _HEAD.pack(_MAGIC, crc32(body), len(body))
                    path = self._path(number)
                    create_private(path)
                    with path.open("wb") as file:
                        file.write(head)
                        file.write(body)
        except BaseException:
            self.drop(staged)
            raise

    def get(self, number: int) -> bytes:
        """Read a staged body.

        :raises StoreError: when it does not exist.
        :raises DamageError: when it is damaged.
        """
        try:
            with translated(self._directory, "read what was put aside in"):
                data = self._path(number).read_bytes()
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise DamageError(f"{self._path(number)}, of a transaction, is missing") from None
            raise
        body = data[_HEAD.size :]
        if data[: _HEAD.size] != _HEAD.pack(_MAGIC, crc32(body), len(body)):
            raise DamageError(f"{self._path(number)}, of a transaction, is damaged")
        return body

    def drop(self, numbers: Iterable[int]) -> None:
        """Delete bodies; unknown numbers are skipped."""
        for number in numbers:
            with suppress(OSError):
                self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / str(number)
