"""NSQ's messages on disk: they count what they counted before the server was restarted."""

from __future__ import annotations

from typing import Final

import pytest

from tests.tmqp_server.doors.nsq.server import EPOCH_S, Server
from tmqp_server.doors.nsq.message import NsqBodies
from tmqp_server.engine.effects import Fetch
from tmqp_server.hub.recovery import answer_of, recover
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.memory import MemoryStore
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import ErrorReceived, MessageReceived, ResponseReceived

OK: Final = ResponseReceived(b"OK")
_ALL: Final = 100


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
            in_memory = 0 if queue.options.memory_limit < _ALL else queue.bytes
            found[names] = (queue.messages + queue.deferred, queue.disk_bytes, in_memory)
        return found


def fill(server: Server) -> None:
    """Messages of every kind, in each place that can hold some."""
    for channel in ("a", "b"):
        server.subscriber("t", channel).close()
    client = server.connect()
    client.send(writing.identify({"client_id": "c" * 40}))
    client.take()
    for command in (
        writing.pub(b"t", b"one"),
        writing.pub(b"t", b"a") + writing.pub(b"t", b"bb"),
        writing.mpub(b"t", [b"x" * 100, b"yy", b"zzz"]),
        writing.dpub(b"t", 5_000, b"later"),
        writing.pub(b"dead", b"without a channel"),
    ):
        client.send(command)
        assert set(client.take()) == {OK}
    consumer = server.subscriber("t", "a", 1)
    consumer.send(writing.fin(consumer.message().message_id))
    consumer.close()


@pytest.mark.parametrize(
    ("commands", "error"),
    [
        (writing.pub(b"t", b"x") + b"NOPE\n", b"E_INVALID invalid command NOPE"),
        (2 * writing.sub(b"t", b"c"), b"E_INVALID cannot SUB in current state"),
        (
            writing.sub(b"t", b"c") + writing.identify({}),
            b"E_INVALID cannot IDENTIFY in current state",
        ),
    ],
)
def test_an_error_closed_the_connection_before_the_disk_had_what_came_before_it(
    commands: bytes, error: bytes
) -> None:
    server = KeptServer(MemoryStore(), _ALL)
    client = server.connect()
    client.send(commands)
    assert client.take() == [OK, ErrorReceived(*error.split(b" ", 1))]
    assert client.number in server.ended


def test_messages_on_disk_counted_other_bytes_after_a_restart() -> None:
    for memory in (1, 3, _ALL):
        store = MemoryStore()
        server = KeptServer(store, memory)
        fill(server)
        before = server.sizes()
        assert before["t", "a"][0] == 6
        assert before["t", "a"][1] >= 27 + 48 + 100
        again = KeptServer(store.restarted(), memory)
        assert again.sizes() == before
        for names in (("t", "a"), ("t", "b")):
            consumer = again.subscriber(*names, 100)
            again.pass_s(6)
            while events := consumer.take():
                received = [each.message_id for each in events if isinstance(each, MessageReceived)]
                consumer.send(*map(writing.fin, received))
            queue = again.queue(*names)
            assert queue is not None
            assert (queue.messages, queue.bytes, queue.disk_bytes) == (0, 0, 0)
