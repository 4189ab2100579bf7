"""``Front``: what stores on a database have in common that hold recent writes before it.

What was written lately is in memory, as one batch (``storage.pending``), and is *carried* into the
database before anything is read of a queue that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tmqp.blocks import AS_BLOCKS, StoredMessage
from tmqp_server.storage.pending import GatheredWrites
from tmqp_server.storage.port import QueueOffsets, StoreBatch, StoredPart, StoreError
from tmqp_server.storage.sqlite.store import BlockStore

__all__ = ["MOST_PENDING_BYTES", "Front", "keys_of"]

#: What is held in memory before it is carried, at most.
MOST_PENDING_BYTES: Final = 8 << 20


class Front:
    """A database, and the writes that it does not have yet.

    :param database: open already.
    """

    def __init__(self, database: BlockStore) -> None:
        self.directory = database.directory
        self._database = database
        self._pending = GatheredWrites()
        self._now_us = 0
        self._is_closed = False

    def catch_up(self) -> None:
        """Do what a write with portions left for later."""
        if not self._is_closed:
            self._database.catch_up()

    def _known(self, batch: StoreBatch) -> dict[int, int]:
        return self._database.queues_of(keys_of(batch))

    def _carry_pending(self) -> None:
        """Bring all recent writes into the database.

        :raises StoreError: when it failed; all is as it was.
        """
        raise NotImplementedError

    def _carry_for(self, keys: Iterable[int]) -> None:
        """Before something is read of queues: see to it that the database has it."""
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
        """The first messages of a queue that are owed, ``after`` < sequence <= ``last``.

        :raises DamageError: when what should be there is not what was written.
        :raises StoreError: when it cannot be read.
        """
        self._carry_for([key])
        return self._database.fetch(key, after, last, limit, max_bytes, priority)

    def read(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, form: int = AS_BLOCKS
    ) -> list[bytes]:
        """What is kept of a queue from ``first`` to ``last``, settled or not, as blocks.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when it cannot be read.
        """
        self._carry_for([key])
        return self._database.read(key, first, last, limit, max_bytes, form=form)

    def offsets(self, keys: Sequence[int]) -> list[QueueOffsets]:
        """What can be read of these queues; zeros for one that is not known.

        :raises StoreError: when it cannot be read.
        """
        self._carry_for(keys)
        return self._database.offsets(keys)

    def find(self, key: int, timestamp_us: int) -> int:
        """The first sequence that is kept of a queue and came at a time or later; 0 if none.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when it cannot be read.
        """
        self._carry_for([key])
        return self._database.find(key, timestamp_us)

    def split(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, most_parts: int
    ) -> list[StoredPart]:
        """Split what is kept of a queue from ``first`` to ``last``, without reading bodies.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when it cannot be read.
        """
        self._carry_for([key])
        return self._database.split(key, first, last, limit, max_bytes, most_parts)


def keys_of(batch: StoreBatch) -> dict[int, None]:
    """The queues that a batch is about."""
    noted = [note.key for note in batch.notes]
    return dict.fromkeys([*batch.appended, *batch.runs, *batch.settled, *noted])
