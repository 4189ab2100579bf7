"""What tests of stores share: messages, batches, and each adapter behind one small face."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

from tmqp.blocks import StoredMessage
from tmqp_server.storage.log import (
    Appended,
    AppendEntry,
    Claim,
    Entries,
    Led,
    LifeOverError,
    LogEntry,
    ReadEntries,
    Resign,
)
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import (
    KeepChannel,
    KeepQueue,
    Note,
    Portion,
    Retention,
    StagedBody,
    Store,
    StoreBatch,
    TopologyChange,
)
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.sqlite import SqliteStore
from tmqp_server.storage.sqlite.replicated import ReplicatedStore
from tmqp_server.storage.sqlite.store import BlockStore
from tmqp_server.storage.stored_runs import StoredRun, unrolled
from tmqp_sim.replicas.log_server import LogServer

NOW_US: Final = 1_700_000_000_000_000
EVER: Final = 1 << 62


class Home(Protocol):
    """Where a store is kept: it can be opened, and opened again after it was closed or left."""

    def open(self) -> Store:
        """The store, as it stands; whoever had it open before is dead."""


class SqliteHome:
    """A directory; a store that was left is closed without a word, as the system would do it."""

    def __init__(
        self, directory: Path, checkpoint_pages: int = 2_048, log_bytes: int = 1 << 20
    ) -> None:
        self.directory = directory
        self.checkpoint_pages = checkpoint_pages
        self.log_bytes = log_bytes
        self.store: SqliteStore | None = None

    def open(self) -> Store:
        if self.store is not None:
            self.store.close(clean=False)
        self.store = SqliteStore(
            self.directory,
            floor_bytes=0,
            checkpoint_pages=self.checkpoint_pages,
            log_bytes=self.log_bytes,
        )
        return self.store


class DatabaseHome:
    """A directory of which only the database is used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store: BlockStore | None = None

    def open(self) -> Store:
        if self.store is not None:
            self.store.close(clean=False)
        self.store = BlockStore(self.directory, floor_bytes=0)
        return self.store


class ReplicatedHome:
    """A directory and a log; whoever opens the store reads the log to its end and leads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = LogServer(lambda: 0.0)
        self.lives = 0
        self.store: ReplicatedStore | None = None

    def open(self) -> Store:
        if self.store is not None:
            self.store.close(clean=False)
        store = self.store = ReplicatedStore(self.directory, floor_bytes=0)
        self.lives += 1
        old = self.log.leader()
        if old is not None:
            self.log.ask(Resign(old))
        led = self.log.ask(Claim("a", "tmqp://a", f"life {self.lives}", 9.0))
        assert isinstance(led, Led)
        assert led.leader is not None
        epoch = led.leader.epoch

        def append(entry: LogEntry) -> None:
            answer = self.log.ask(AppendEntry(epoch, entry.number, entry.data))
            if not isinstance(answer, Appended):
                raise LifeOverError("another one leads")

        read = self.log.ask(ReadEntries(store.carried, EVER))
        assert isinstance(read, Entries)
        store.take(read.entries)
        begin = store.writes.begin(epoch, "a", "tmqp://a", NOW_US)
        append(begin)
        store.take([begin])
        store.lead(append)
        return store


class MemoryHome:
    def __init__(self) -> None:
        self.store: MemoryStore | None = None

    def open(self) -> Store:
        self.store = MemoryStore() if self.store is None else self.store.restarted()
        return self.store


HOMES: Final[dict[str, Callable[[Path], Home]]] = {
    "memory": lambda _path: MemoryHome(),
    "database": DatabaseHome,
    "replicated": ReplicatedHome,
    "sqlite": SqliteHome,
    "sqlite, with a small log": lambda path: SqliteHome(path, log_bytes=4_096),
}


def message(
    sequence: int,
    body: bytes = b"body",
    flags: int = 0,
    timestamp_us: int = NOW_US,
    attempts: int = 0,
    put_backs: int = 0,
) -> StoredMessage:
    return StoredMessage(
        sequence, timestamp_us, 0, 0, flags, attempts, put_backs, 0, 0, len(body), body
    )


def queue(key: int, retention: Retention | None = None, options: bytes = b"{}") -> KeepQueue:
    return KeepQueue(key, "c", key, options, retention or Retention())


def batch(
    *changes: TopologyChange,
    appended: dict[int, list[StoredMessage]] | None = None,
    settled: dict[int, list[int]] | None = None,
    notes: Iterable[Note] = (),
    portions: Iterable[Portion] = (),
) -> StoreBatch:
    made = StoreBatch()
    made.changes.extend(changes)
    made.appended.update(appended or {})
    made.settled.update(settled or {})
    made.notes.extend(notes)
    made.portions.extend(portions)
    return made


class Listed(Portion):
    """A portion of messages that are there."""

    def __init__(self, key: int, messages: list[StoredMessage]) -> None:
        super().__init__(key)
        self._messages = messages

    def messages(self) -> list[StoredMessage]:
        """Those; None of them can be made when there are none."""
        if not self._messages:
            raise ValueError("no messages")
        return self._messages

    def size(self) -> int:
        """Of their bodies."""
        return sum(len(each.body) for each in self._messages)


class Staged(StagedBody):
    """A body that is the sequences of messages, in text."""

    def __init__(self, *sequences: int) -> None:
        self._body = ",".join(str(each) for each in sequences).encode()

    def body(self) -> bytes:
        """The sequences."""
        return self._body

    def size(self) -> int:
        """Of the body."""
        return len(self._body)


class OfStaged(Portion):
    """The messages of such a body."""

    def __init__(self, key: int, staging: int) -> None:
        super().__init__(key, staging)
        self._body = b""

    def load(self, body: bytes) -> None:
        """Take the body."""
        self._body = body

    def messages(self) -> list[StoredMessage]:
        """A message of each sequence."""
        assert self._body, "it was not loaded"
        return [message(int(each)) for each in self._body.split(b",")]

    def size(self) -> int:
        """Not known."""
        return 0


class InRuns(Portion):
    """What a commit brings: messages in runs."""

    def __init__(self, key: int, runs: list[StoredRun]) -> None:
        super().__init__(key)
        self._runs = runs

    def messages(self) -> list[StoredMessage]:
        """One by one."""
        return unrolled(None, self._runs)

    def size(self) -> int:
        """Of their bodies."""
        return sum(len(each.bodies) for each in self._runs)

    def runs(self) -> list[StoredRun]:
        """As they are."""
        return self._runs


def with_queue(store: Store, key: int = 1, retention: Retention | None = None) -> Store:
    """A store, fresh, with one queue."""
    store.recover()
    store.write(batch(KeepChannel("c", b"{}"), queue(key, retention)), NOW_US)
    return store


def owed(store: Store, key: int = 1, priority: int = 0) -> list[int]:
    """The sequences of all that is owed."""
    return [m.sequence for m in store.fetch(key, 0, EVER, 1_000_000, EVER, priority)]


def kept(store: Store, key: int = 1, first: int = 0, last: int = EVER) -> list[int]:
    """The sequences of all that can be read."""
    blocks = store.read(key, first, last, 1_000_000, EVER)
    return [m.sequence for block in blocks for m in decode_block(block).messages()]


def push_each(store: Store, sequences: Iterable[int], key: int = 1, size: int = 10) -> None:
    """Append messages, each in a write of its own."""
    for sequence in sequences:
        body = b"%d:" % sequence + b"x" * size
        store.write(batch(appended={key: [message(sequence, body)]}), NOW_US)
