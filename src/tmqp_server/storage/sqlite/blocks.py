"""Reads the blocks in the database.

The blocks that were read last are cached, up to ``_CACHE_BYTES``, because reading a queue continues
where it stopped.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from pathlib import Path
from typing import Final

from tmqp.blocks import Block, head_of, index_end
from tmqp_server.storage.port import DamageError
from tmqp_server.storage.records import decode_block, decode_index
from tmqp_server.storage.sqlite.extents import Extent
from tmqp_server.storage.sqlite.schema import translated

__all__ = ["BlockReader"]

_CACHE_BYTES: Final = 4 << 20


class BlockReader:
    """Reads blocks; ``Shelf`` writes them.

    ``problems`` has the damage that was found and skipped; with ``skip``, damage is skipped.
    """

    __slots__ = ("_cache", "_cached_bytes", "db", "directory", "problems", "skip")

    def __init__(self, db: sqlite3.Connection, directory: Path, skip: bool) -> None:
        self.db = db
        self.directory = directory
        self.skip = skip
        self.problems: list[str] = []
        self._cache: OrderedDict[int, Block] = OrderedDict()
        self._cached_bytes = 0

    def report(self, text: str) -> None:
        """Note damage that is skipped."""
        if text not in self.problems:
            self.problems.append(text)

    def block(self, extent: Extent) -> Block | None:
        """The block of an extent; None if it is damaged and damage is skipped.

        :raises DamageError: when it is damaged.
        """
        found = self._cache.get(extent.id)
        if found is not None:
            self._cache.move_to_end(extent.id)
            return found
        if extent.damaged and self.skip:
            return None
        try:
            with translated(self.directory, "read a block of"):
                row = self.db.execute(
                    "SELECT block FROM bodies WHERE id = ?", (extent.id,)
                ).fetchone()
            found = _checked(extent, decode_block(_bytes(row)))
        except DamageError as error:
            self._damaged(extent, error)
            return None
        self._cache[extent.id] = found
        self._cached_bytes += len(found.data)
        while self._cached_bytes > _CACHE_BYTES and len(self._cache) > 1:
            self.uncache(next(iter(self._cache)))
        return found

    def whole(self, extent: Extent, index_only: bool = False) -> bytes | None:
        """The bytes of an extent's block as they are on disk, to be checked by their reader.

        None if it is damaged and damage is skipped.  With ``index_only``, everything except the
        bodies.

        :raises DamageError: when there is another block, or none.
        """
        size = index_end(extent.count)
        if not index_only:
            size += extent.size
        found = self._cache.get(extent.id)
        if found is not None:
            return found.data[:size]
        if extent.damaged and self.skip:
            return None
        try:
            with translated(self.directory, "read a block of"):
                data = self._beginning(extent, size)
            _check_head(extent, data, size)
        except DamageError as error:
            self._damaged(extent, error)
            return None
        return data

    def index(self, extent: Extent) -> Block | None:
        """Like :meth:`block`, but read only the head and the index."""
        found = self._cache.get(extent.id)
        if found is not None or (extent.damaged and self.skip):
            return found
        try:
            with translated(self.directory, "read a block of"):
                data = self._beginning(extent, index_end(extent.count))
            return _checked(extent, decode_index(data))
        except DamageError as error:
            self._damaged(extent, error)
            return None

    def _beginning(self, extent: Extent, size: int) -> bytes:
        """The first bytes of a block; the rest of a large one is not read from disk."""
        try:
            with self.db.blobopen("bodies", "block", extent.id, readonly=True) as blob:
                return blob.read(size)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:  # no such row, or another type
                raise DamageError(f"the block is missing: {error}") from error
            raise

    def _damaged(self, extent: Extent, error: DamageError) -> None:
        extent.damaged = True
        text = f"{extent.words} (block {extent.id}) are damaged: {extent.why(error)}"
        if not self.skip:
            raise DamageError(text) from error
        self.report(text)

    def uncache(self, number: int) -> None:
        """Remove a block from the cache."""
        block = self._cache.pop(number, None)
        if block is not None:
            self._cached_bytes -= len(block.data)

    def size_of(self, extent: Extent, mask: int) -> int:
        """The size of the bodies of the messages in a mask."""
        if mask.bit_count() == extent.count:
            return extent.size
        if not mask or (block := self.index(extent)) is None:
            return 0
        total = 0
        for place in range(block.count):
            if mask >> (block.sequence(place) - extent.first) & 1:
                total += block.size(place)
        return total


def _check_head(extent: Extent, data: bytes, size: int) -> None:
    """Check that a block's head belongs to the block that the extent describes.

    :param size: the size that was read.
    :raises DamageError: when it is another block, or too short.
    """
    if len(data) != size:
        raise DamageError(f"{len(data)} bytes are there, not {size}")
    told = (extent.key, extent.first, extent.last, extent.count, extent.size)
    if head_of(data) != told:
        raise DamageError("another block is there")


def _checked(extent: Extent, block: Block) -> Block:
    """Return a block if it is the one that the extent describes.

    :raises DamageError: when it is another block.
    """
    told = (extent.key, extent.first, extent.last, extent.count, extent.size)
    if (block.key, block.first, block.last, block.count, block.body_size) != told:
        raise DamageError(
            f"another block is there: messages {block.first} to {block.last} of queue {block.key}"
        )
    return block


def _bytes(row: tuple[object] | None) -> bytes:
    if row is None:
        raise DamageError("the block is missing")
    if not isinstance(row[0], bytes):
        raise DamageError("the block has another type")
    return row[0]
