"""``Front``: the common part of stores that collect recent writes before their database.

Recent writes are in memory, merged into one batch (``storage.pending``). They are *carried* into
the database before a queue that they affect is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tmqp.blocks import AS_BLOCKS, StoredMessage
from tmqp_server.storage.pending import GatheredWrites
from tmqp_server.storage.port import QueueOffsets, StoreBatch, StoredPart, StoreError
from tmqp_server.storage.sqlite.store import BlockStore

__all__ = ["MOST_PENDING_BYTES", "Front", "keys_of"]

#: How many bytes of recent writes are kept in memory before they are carried.
MOST_PENDING_BYTES: Final = 8 << 20


class Front:
    """A database, and the recent writes that it does not have yet.

    :param database: the database, already open.
    """

    def __init__(self, database: BlockStore) -> None:
        self.directory = database.directory
        self._database = database
        self._pending = GatheredWrites()
        self._now_us = 0
        self._is_closed = False

    def catch_up(self) -> None:
        """Do the work that a write with portions has deferred."""
        if not self._is_closed:
            self._database.catch_up()

    def _known(self, batch: StoreBatch) -> dict[int, int]:
        return self._database.queues_of(keys_of(batch))

    def _carry_pending(self) -> None:
        """Carry all recent writes into the database.

        :raises StoreError: when it fails; then nothing has changed.
        """
        raise NotImplementedError

    def _carry_for(self, keys: Iterable[int]) -> None:
        """Before queues are read, carry their recent writes into the database."""
        if self._is_closed:
            raise StoreError(f"{self.directory} is closed")
        self._before_reading(keys)

    def _before_reading(self, keys: Iterable[int]) -> None:
        self._database.ready()
        if any(self._pending.touches(key) for key in keys):
            self._carry_pending()

    # --- Reading ---------------------------------------------------------------------------------

    def fetch(
        self, key: int, after: int, last: int, limit: int, max_bytes: int, priority: int
    ) -> list[StoredMessage]:
        """Return the first owed messages of a queue, ``after`` < sequence <= ``last``.

        :raises DamageError: when a stored message is damaged.
        :raises StoreError: when the store cannot be read.
        """
        self._carry_for([key])
        return self._database.fetch(key, after, last, limit, max_bytes, priority)

    def read(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, form: int = AS_BLOCKS
    ) -> list[bytes]:
        """Return the kept messages of a queue from ``first`` to ``last``, settled or not, as
        blocks.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """
        self._carry_for([key])
        return self._database.read(key, first, last, limit, max_bytes, form=form)

    def offsets(self, keys: Sequence[int]) -> list[QueueOffsets]:
        """Return the readable sequences of these queues; zeros for an unknown queue.

        :raises StoreError: when the store cannot be read.
        """
        self._carry_for(keys)
        return self._database.offsets(keys)

    def find(self, key: int, timestamp_us: int) -> int:
        """Return the first kept sequence of a queue that arrived at a time or later; 0 if none.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """
        self._carry_for([key])
        return self._database.find(key, timestamp_us)

    def split(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, most_parts: int
    ) -> list[StoredPart]:
        """Split the kept messages of a queue from ``first`` to ``last`` into parts, without reading
        bodies.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """
        self._carry_for([key])
        return self._database.split(key, first, last, limit, max_bytes, most_parts)


def keys_of(batch: StoreBatch) -> dict[int, None]:
    """The keys of the queues that a batch affects."""
    noted = [note.key for note in batch.notes]
    return dict.fromkeys([*batch.appended, *batch.runs, *batch.settled, *noted])
