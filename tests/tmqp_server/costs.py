"""Owns the work whose cost is counted: so many messages through the codec, or through the hub.

As a program it does one of these works once, for who counts the instructions of a process.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Final

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
from tmqp_server.hub import Hub

__all__ = ["WORKS", "connect", "hub_with_queue"]

_CHUNK_BYTES: Final = 65_536
_PRODUCER, _CONSUMER = 1, 2


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


def hub_with_queue(status: str, options: bytes) -> Hub:
    """A hub with a producer (1), and a consumer (2) of a queue."""
    hub = Hub(Broker(), 1 << 20)
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
    return sum([len(hub.data_to_send(number)) for number in hub.take_touched()])


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
    assert queue.received == queue.sent == queue.done == count
    assert size > count * 100


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
}

if __name__ == "__main__":
    WORKS[sys.argv[1]](int(sys.argv[2]))
