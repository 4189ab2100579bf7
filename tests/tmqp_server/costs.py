"""Owns the work whose cost is counted: so many messages through the codec, or through the hub.

As a program it does one of these works once, for who counts the instructions of a process.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.tmqp_server.outputs import sent, touched
from tmqp.codec import FrameDecoder
from tmqp.constants import (
    OP_CREATE_QUEUE,
    OP_JOIN,
    TYPE_ACKNOWLEDGE,
    TYPE_QUEUE_MESSAGE,
    TYPE_SERVER,
)
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.sqlite.front import SqliteStore

__all__ = ["WORKS", "connect", "hub_with_queue"]

_CHUNK_BYTES: Final = 65_536
_PRODUCER, _CONSUMER = 1, 2
_UNDER_WAY: Final = 256


def _pushes(count: int, *, confirm: bool) -> list[bytes]:
    stream = b"".join(
        [
            Frame.build(
                TYPE_QUEUE_MESSAGE,
                "c",
                1,
                number.to_bytes(4, "big") * 25,
                message_id=f"{number:032x}",
                source="client1",
                pending_acknowledge=confirm,
            ).raw
            for number in range(count)
        ]
    )
    return [stream[at : at + _CHUNK_BYTES] for at in range(0, len(stream), _CHUNK_BYTES)]


def _answers(count: int) -> bytes:
    return b"".join(
        [
            Frame.build(TYPE_ACKNOWLEDGE, "c", 1, message_id=f"{number:032x}", source="client2").raw
            for number in range(count)
        ]
    )


def connect(hub: Hub, numbers: Iterable[int]) -> None:
    """Let clients in, named after their sessions' numbers."""
    ids = itertools.count()
    door = NativeDoor(lambda: f"{next(ids):032x}", Limits())
    for number in numbers:
        hub.open(number, door, 0.0)
        who = ConnectionInformation(f"client{number}").encode()
        hub.receive(number, b"TMQP/2.0" + Frame.build(TYPE_SERVER, "", 101, who).raw, 0.0)
    _sent(hub)


def hub_with_queue(status: str, options: bytes, journal: Journal | None = None) -> Hub:
    """A hub with a producer (1), and a consumer (2) of a queue."""
    broker = Broker(options=BrokerOptions(storage=journal is not None))
    hub = Hub(broker, 1 << 20, journal)
    connect(hub, (_PRODUCER, _CONSUMER))
    headers = [("Queue-Id", "1"), ("Queue-Status", status)]
    create = Frame.build(
        TYPE_SERVER, "c", OP_CREATE_QUEUE, options, message_id="o", headers=headers
    )
    hub.receive(_PRODUCER, create.raw, 0.0)
    if status != "pull":
        hub.receive(_CONSUMER, Frame.build(TYPE_SERVER, "c", OP_JOIN, message_id="j").raw, 0.0)
    _sent(hub)
    return hub


def _sent(hub: Hub) -> int:
    return sum([len(sent(hub, number)) for number in touched(hub)])


def _prepare(count: int, *, answers: bool) -> None:
    assert _pushes(count, confirm=answers)
    assert not answers or _answers(count)


def _decode(count: int, *, bundles: bool) -> None:
    decoder = FrameDecoder()
    decoder.bundles = bundles
    seen = 0
    for chunk in _pushes(count, confirm=False):
        seen += len(decoder.feed(chunk)) + sum([run.count - 1 for run in decoder.runs])
    assert seen == count


def _through(status: str, options: bytes, count: int, *, answered: bool) -> None:
    hub = hub_with_queue(status, options)
    size = 0
    for chunk in _pushes(count, confirm=answered):
        more = hub.receive(_PRODUCER, chunk, 1.0)
        size += _sent(hub)
        while more:
            more = hub.go_on(_PRODUCER, 1.0)
            size += _sent(hub)
    if answered:
        hub.receive(_CONSUMER, _answers(count), 2.0)
    (queue,) = hub.broker.queues()
    assert queue.counters.received == queue.counters.sent == queue.counters.done == count
    assert size > count * 100


def _durably(count: int) -> None:
    """Messages that are answered for while they are written: as many at a time as may be under way
    between a client and a disk."""
    door = NativeDoor(lambda: "", Limits())
    journal = Journal([door])
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder))
        store.recover()
        hub = hub_with_queue("push", b'{"RequestAcknowledge":true,"Durable":true}', journal)
        _write(hub, journal, store)
        pushes = b"".join(_pushes(count, confirm=True))
        answers = _answers(count)
        push_bytes, answer_bytes = len(pushes) // count, len(answers) // count
        size = 0
        for at in range(0, count, _UNDER_WAY):
            end = at + _UNDER_WAY
            hub.receive(_PRODUCER, pushes[at * push_bytes : end * push_bytes], 1.0)
            size += _sent(hub)
            writing = journal.take()
            hub.receive(_CONSUMER, answers[at * answer_bytes : end * answer_bytes], 2.0)
            size += _sent(hub)
            _write(hub, journal, store, writing)
            size += _sent(hub)
        (queue,) = hub.broker.queues()
        assert queue.counters.received == queue.counters.saved == queue.counters.done == count
        assert size > count * 150
        store.close(True)


def _write(hub: Hub, journal: Journal, store: SqliteStore, writing: Writing | None = None) -> None:
    if writing is None:
        writing = journal.take()
    store.write(writing.batch, 1)
    for answer in journal.answers(writing, True, 1_000):
        hub.answer(answer, 2.0)


#: What is counted, for so many messages.
WORKS: Final[dict[str, Callable[[int], None]]] = {
    "pushes": lambda count: _prepare(count, answers=False),
    "pushes and answers": lambda count: _prepare(count, answers=True),
    "decode": lambda count: _decode(count, bundles=False),
    "decode in runs": lambda count: _decode(count, bundles=True),
    "broadcast": lambda count: _through(
        "broadcast", b'{"RequestAcknowledge":false}', count, answered=False
    ),
    "push with both acknowledges": lambda count: _through(
        "push", b'{"RequestAcknowledge":true}', count, answered=True
    ),
    "durable push with both acknowledges": _durably,
}

if __name__ == "__main__":
    WORKS[sys.argv[1]](int(sys.argv[2]))
