"""The work of the doors of goMS and Simple MQ whose cost is counted: messages, in chunks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from tests.tmqp_server.outputs import sent, touched
from tmqp_server.doors.goms.door import GomsDoor
from tmqp_server.doors.goms.options import GomsOptions
from tmqp_server.doors.port import Door
from tmqp_server.doors.smq.door import SmqDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.hub.hub import Hub
from tmqp_wires.goms import Dialect
from tmqp_wires.goms.codec import request_line
from tmqp_wires.smq.codec import consume_line, done_line, publish_line

__all__ = ["goms_lines", "goms_sent", "smq_consumed", "smq_lines"]

_TOPIC: Final = "topic"
_PRODUCER, _CONSUMER = 1, 2
#: Lines of a chunk.
_ROW: Final = 200


def goms_lines(count: int) -> list[bytes]:
    """Messages to a topic, in chunks."""
    dialect = Dialect.MESSAGETYPE
    return _chunks([request_line(dialect, "send", [_TOPIC], f"{n:0200}") for n in range(count)])


def smq_lines(count: int) -> list[bytes]:
    """Messages into a queue, in chunks."""
    return _chunks([publish_line(_TOPIC.encode(), b"%0200d" % number) for number in range(count)])


def _chunks(lines: list[bytes]) -> list[bytes]:
    return [b"".join(lines[at : at + _ROW]) for at in range(0, len(lines), _ROW)]


def _ids() -> Iterator[str]:
    return (f"{number:012x}{0:020x}" for number in itertools.count(1))


def _hub(door: Door, first: bytes) -> Hub:
    hub = Hub(Broker(), 1 << 20)
    for number in (_PRODUCER, _CONSUMER):
        hub.open(number, door, 0.0)
    _say(hub, _CONSUMER, first)
    return hub


def _say(hub: Hub, number: int, chunk: bytes) -> int:
    """Let a client say this; how many bytes are sent for it."""
    more = hub.receive(number, chunk, 1.0)
    size = 0
    while True:
        size += sum([len(sent(hub, each)) for each in touched(hub)])
        if not (more or hub.has_more(number)):
            return size
        more = hub.go_on(number, 1.0)


def goms_sent(count: int) -> None:
    """Messages to one that is registered."""
    ids = _ids()
    door = GomsDoor(ids.__next__, None, GomsOptions(topics=(_TOPIC,)))
    hub = _hub(door, request_line(Dialect.MESSAGETYPE, "register", [_TOPIC]))
    size = sum([_say(hub, _PRODUCER, chunk) for chunk in goms_lines(count)])
    assert size > count * 200


def smq_consumed(count: int) -> None:
    """Messages to a consumer that counts them as done."""
    ids = _ids()
    hub = _hub(SmqDoor(ids.__next__), consume_line(_TOPIC.encode()))
    size = 0
    for chunk in smq_lines(count):
        size += _say(hub, _PRODUCER, chunk)
        _say(hub, _CONSUMER, done_line(_TOPIC.encode(), chunk.count(b"\n")))
    (queue,) = hub.broker.queues()
    assert queue.counters.received == queue.counters.done == count
    assert size == count * 201
