"""A world with a storage for tests: broker, journal and a store in memory that can be cut off.

Nothing is written before the test says so (``sync``), so whatever the test has not let through is
lost when the server is killed (``crash``), as it would be on a disk.
"""

from __future__ import annotations

from tests.tmqp_server.engine.world import World
from tests.tmqp_server.line_door import LineDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import StorageState, Synced
from tmqp_server.engine.effects import Append, Effect, Erase, Fetch, StoredChange
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueChanges, QueueOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.recovery import fetched, recover
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import StoreError

__all__ = ["DURABLE", "KeptWorld"]

DURABLE = QueueChanges(durable=True)


class KeptWorld(World):
    """A world whose broker has a storage; ``store`` is what it has written."""

    def __init__(
        self,
        limits: EngineLimits | None = None,
        handlers: dict[str, DeliveryHandler] | None = None,
        queue: QueueOptions | None = None,
        takes_nodes: bool = False,
    ) -> None:
        self._limits = limits
        self._handlers = handlers or {}
        channel = ChannelOptions(queue=queue)
        options = BrokerOptions(
            channel=channel, events=NO_EVENTS, storage=True, takes_nodes=takes_nodes
        )
        super().__init__(limits, options, handlers)
        self.store = MemoryStore()
        self.store.recover()
        self.door = LineDoor("")  # the name of the door of clients that name none
        #: What to add to the server's clock for the wall clock.
        self.offset_s = 0.0
        self.journal = Journal([self.door])
        self.fetches: list[Fetch] = []

    def told(self, effects: list[Effect]) -> list[str]:
        for effect in effects:
            if isinstance(effect, Append):
                self.journal.append(effect, self.now)
            elif isinstance(effect, Erase):
                self.journal.erase(effect)
            elif isinstance(effect, StoredChange):
                self.journal.change(effect)
            elif isinstance(effect, Fetch):
                self.fetches.append(effect)
        return super().told(effects)

    def write(self, fails: str = "") -> list[str]:
        """Write what was gathered, once; *fails* says why it cannot be."""
        writing = self.journal.take()
        if fails:
            self.store.failures.append(StoreError(fails))
        ok = True
        if not writing.batch.is_empty():
            try:
                self.store.write(writing.batch, int((self.now + self.offset_s) * 1e6))
            except StoreError:
                ok = False
        else:
            self.store.failures.clear()
        answer = self.journal.finished(writing, ok)
        return [] if answer is None else self.step(answer)

    def fetch(self) -> list[str]:
        """Answer what the broker wants to have back, once each."""
        words: list[str] = []
        fetches, self.fetches = self.fetches, []
        for fetch in fetches:
            words += self.step(fetched(self.store, self.journal, fetch, self.now))
        return words

    def sync(self) -> list[str]:
        """Let the storage do all that there is to do."""
        words: list[str] = []
        for _ in range(10_000):
            words += self.finish()
            if self.journal.is_empty and not self.fetches:
                return words
            words += self.write()
            words += self.fetch()
        raise AssertionError("the storage always has something to do")

    def state(self, ok: bool) -> list[str]:
        """Say how the storage is."""
        return self.step(StorageState(ok))

    def crash(self) -> None:
        """Kill the server and start it again: what was not written is gone."""
        self._start(self.store.restarted())

    def reboot(self, down_s: float) -> None:
        """Cut the machine's power for a while: its monotonic clock starts anew, near zero."""
        wall_s = self.now + self.offset_s + down_s
        self.now = 0.0
        self.offset_s = wall_s
        self._start(self.store.restarted())

    def restart(self) -> None:
        """Stop the server and start it again."""
        for name in list(self.numbers):
            if self.numbers[name] in self.broker._core.sessions:
                self.disconnect(name)
        self.sync()
        self.journal.notes(self.broker.notes())
        self.write()
        self.store.close(clean=True)
        self._start(self.store.restarted())

    def _start(self, store: MemoryStore) -> None:
        self.store = store
        registry = built_in_handlers()
        for name, handler in self._handlers.items():
            registry.register(name, handler)
        self.broker = Broker(self._limits, self.options, registry)
        self.names = {}
        self.journal = Journal([self.door], self.offset_s)
        self.fetches = []
        self.numbers = {}
        self.now += 1.0
        recover(store, Hub(self.broker, 0, self.journal), self.journal, self.now)
        self.check([])

    def synced(self, ticket: int, ok: bool = True) -> list[str]:
        """One answer by hand, for tests without the store."""
        return self.step(Synced(ticket, ok))
