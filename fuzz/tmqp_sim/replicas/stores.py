"""The store of a simulated server: in memory, with what of it is on its disk.

What comes from the log is in memory first, and on the disk when it was *carried* there, as a whole.
A crash takes back all that was not carried.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import ANY_PRIORITY, StoreBatch
from tmqp_server.storage.replicated import Keeping, ReplicatedWrites

__all__ = ["Disk", "SimStore", "digest_of"]

_EVER: Final = 1 << 62


class Disk:
    """What a server finds when it begins: the store, and how much of the log it has.

    :param identity: the id that a store has before it belongs to a group.

    ``has_joined`` says that the group knows of it, and that the log had all that it needs then.
    """

    def __init__(self, identity: str) -> None:
        self.store = MemoryStore(identity)
        self.number = 0
        self.epoch = 0
        self.now_us = 0
        self.has_joined = False

    def copy(self) -> Disk:
        """What a backup has."""
        other = Disk(self.store.store_id)
        other.store = self.store.restarted()
        other.number, other.epoch, other.now_us = self.number, self.epoch, self.now_us
        return other


class SimStore(Keeping):
    """A store that is open, on a disk."""

    def __init__(self, disk: Disk, most_entry_bytes: int) -> None:
        self.disk = disk
        self.memory = disk.store.restarted()
        self.memory.recover()
        self.writes = ReplicatedWrites(self, disk.number, disk.epoch, most_entry_bytes)
        self.writes.now_us = disk.now_us

    def identity(self) -> str:
        """The id of what is kept."""
        return self.memory.store_id

    def adopt(self, identity: str) -> None:
        """Take over the group's id."""
        self.memory.store_id = identity

    def keep(self, batch: StoreBatch, used: dict[int, int], now_us: int) -> None:
        """Take a batch that is in the log."""
        self.memory.write(batch, now_us)
        for key, sequence in used.items():
            self.memory.reserve(key, sequence)

    def carry(self) -> int:
        """Bring to the disk all that is here; returns the last entry that it has."""
        disk = self.disk
        disk.store = self.memory.restarted()
        disk.number, disk.epoch = self.writes.applied, self.writes.epoch
        disk.now_us = self.writes.now_us
        return disk.number


def digest_of(store: MemoryStore) -> str:
    """All that servers of a group have in common, as one word."""
    found = store.restarted()
    known = found.recover()
    told: list[object] = [store.store_id, known.channels, known.routers, known.cursors, known.marks]
    digest = blake2b(digest_size=8)
    for each in known.queues:
        key = each.queue.key
        told.append(each)
        for block in found.read(key, 0, _EVER, 1_000_000, _EVER):
            digest.update(block)  # which has every field of its messages
        owed = found.fetch(key, 0, _EVER, 1_000_000, _EVER, ANY_PRIORITY)
        told.append([message.sequence for message in owed])
    digest.update(repr(told).encode())
    return digest.hexdigest()
