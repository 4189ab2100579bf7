"""A whole server in memory, with every door that keeps its messages in a store on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.tmqp_server.doors.hub_stage import HubStage
from tests.tmqp_server.outputs import asked_of_storage
from tests.tmqp_server.storage.stores import Home, MemoryHome, SqliteHome
from tests.tmqp_server.toy_door import ToyKind
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.doors.port import Door
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.doors.wires import LetterWires
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.recovery import answer_of, recover
from tmqp_server.storage.journal import Journal
from tmqp_server.wiring.assembly import build_broker
from tmqp_server.wiring.doors import Doors

__all__ = ["OFFSET_S", "MatrixStage"]

#: What the clock of the world reads when that of the engine reads 0.
OFFSET_S: Final = 1_795_000_000.0


class MatrixStage(HubStage):
    """A server with these tables of ``[[doors]]``; what it writes is on disk at once.

    :param folder: where its store is; a store in memory if it is None.
    """

    def __init__(self, tables: Iterable[Mapping[str, Any]], folder: Path | None = None) -> None:
        self._tables = [dict(table) for table in tables]
        self._home: Home = MemoryHome() if folder is None else SqliteHome(folder)
        self._numbers = count(1)
        self._start(1_000.0)

    def _start(self, now: float) -> None:
        config = ServerConfig(**{**read_config({"doors": self._tables}), "data": "kept"})
        doors = Doors(config, DoorRegistry([ToyKind()]), self.new_id, OFFSET_S, now)
        self.doors: dict[str, Door] = {doors.native.name: doors.native}
        for each in doors.further:
            self.doors[each.protocol] = each.door
            if each.by_datagrams is not None:
                self.doors[f"{each.protocol}, datagrams"] = each.by_datagrams
        broker = build_broker(config)
        broker.know_wires(LetterWires(doors.native.letters))
        self.store = self._home.open()
        self.journal = Journal(doors.bodies, OFFSET_S)
        super().__init__(broker, Hub(broker, 0, self.journal), now)
        recover(self.store, self.hub, self.journal, now)
        self.settle()

    def new_id(self) -> str:
        """An id that nobody else has."""
        return f"{next(self._numbers):032x}"

    @property
    def unix_ms(self) -> int:
        """The time, in milliseconds since 1970."""
        return int((self.now + OFFSET_S) * 1_000)

    def dial(self, door: str) -> int:
        """The number of a new connection."""
        return self.connect(self.doors[door], f"127.0.0.1:{40_001 + len(self.sent)}")

    def settle(self) -> None:
        """Let everything happen that is due, in the broker, on disk and in the kernel."""
        super().settle()
        while self._write() or self._flush():
            super().settle()

    def _write(self) -> bool:
        asked = asked_of_storage(self.hub)
        for each in asked:
            self.hub.perform(answer_of(self.store, self.journal, each, self.now), self.now)
        if self.journal.is_empty:
            return bool(asked)
        writing = self.journal.take()
        self.store.write(writing.batch, self.unix_ms * 1_000)
        answer = self.journal.finished(writing, True)
        if answer is not None:
            self.hub.perform(answer, self.now)
        return True

    def _flush(self) -> bool:
        awaited = list(self.hub.awaited)
        for number in awaited:
            self.hub.written(number, self.now)
        return bool(awaited)

    def restart(self) -> None:
        """Stop the server, cleanly, and start it again; nobody is connected."""
        for number in self.sent:
            if number not in self.ended:
                self.hub.receive_eof(number, self.now)
                self.settle()
                self.end(number)
        self.journal.notes(self.broker.notes())
        self.store.write(self.journal.take().batch, self.unix_ms * 1_000)
        self.store.close(clean=True)
        if isinstance(self._home, SqliteHome):
            self._home.store = None
        self._start(self.now + 1.0)

    def close(self) -> None:
        """Leave nothing open."""
        self.store.close(clean=True)
