"""A server of NSQ that keeps what is durable, in a store that outlives it."""

from __future__ import annotations

from typing import Final

from tests.tmqp_server.doors.nsq.server import EPOCH_S, Server
from tmqp_server.doors.nsq.message import NsqBodies
from tmqp_server.engine.effects import Fetch
from tmqp_server.hub.recovery import answer_of, recover
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.memory import MemoryStore

__all__ = ["ALL", "KeptServer"]

#: More messages than any test has: all of them stay in memory.
ALL: Final = 100


class KeptServer(Server):
    """A server whose store keeps at once what it is to keep; with another one's it begins again."""

    def __init__(self, store: MemoryStore, mem_queue_size: int) -> None:
        self.store = store
        self.journal = Journal([NsqBodies()], EPOCH_S)
        super().__init__(journal=self.journal, mem_queue_size=mem_queue_size)
        recover(store, self.hub, self.journal, self.now)
        self.settle()

    def settle(self) -> None:
        """Write and read, too."""
        super().settle()
        while not self.journal.is_empty:
            batch = self.journal.take()
            assert batch is not None
            self.store.write(batch.batch, 0)
            for answer in self.journal.answers(batch, True, 1_000):
                self.hub.perform(answer, self.now)
            super().settle()

    def fetch(self, asked: Fetch) -> None:
        """From the store."""
        self.hub.perform(answer_of(self.store, self.journal, asked, self.now), self.now)

    def sizes(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """What topics and channels count: messages, due or not, their bytes on disk, and those in
        memory if all are there."""
        found: dict[tuple[str, str], tuple[int, ...]] = {}
        for names in (("t", "a"), ("t", "b"), ("t", ""), ("dead", "")):
            queue = self.queue(*names)
            assert queue is not None, names
            in_memory = 0 if queue.options.memory_limit < ALL else queue.bytes
            found[names] = (queue.messages + queue.deferred, queue.disk_bytes, in_memory)
        return found
