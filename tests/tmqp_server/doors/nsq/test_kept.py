"""NSQ's messages on disk: they count what they counted before the server was restarted."""

from __future__ import annotations

from typing import Final

import pytest

from tests.tmqp_server.doors.nsq.kept import ALL, KeptServer
from tests.tmqp_server.doors.nsq.server import Server
from tmqp_server.storage.memory import MemoryStore
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import ErrorReceived, MessageReceived, ResponseReceived

OK: Final = ResponseReceived(b"OK")


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
    server = KeptServer(MemoryStore(), ALL)
    client = server.connect()
    client.send(commands)
    assert client.take() == [OK, ErrorReceived(*error.split(b" ", 1))]
    assert client.number in server.ended


def test_a_message_came_before_the_answer_to_sub() -> None:
    """The channel was not on disk yet when the message was published."""
    server = KeptServer(MemoryStore(), ALL)
    server.subscriber("t", "another").close()
    consumer, producer = server.connect(), server.connect()
    producer.send(writing.pub(b"t", b"before"))
    for client, chunk in (
        (consumer, writing.sub(b"t", b"c") + writing.rdy(5)),
        (producer, writing.pub(b"t", b"x")),
    ):
        server.hub.receive(client.number, chunk, server.now)  # nothing is written in between
    first, message = consumer.take()
    assert first == OK
    assert isinstance(message, MessageReceived)
    assert message.body == b"x"


def test_messages_on_disk_counted_other_bytes_after_a_restart() -> None:
    for memory in (1, 3, ALL):
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
