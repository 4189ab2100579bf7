"""Case F8 at the door of Throttr: no request keeps other clients waiting, however much there is.

The limit is that of ``test_work_of_operations.py``: the target of 20 ms, three times for the
compiled server and twelve times for the interpreted one, on this machine.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

import tmqp
from tests.machine import step_limit_s
from tests.tmqp_server.doors.throttr.talk import insert, subscribe
from tmqp_server.doors.throttr.door import ThrottrDoor
from tmqp_server.doors.throttr.options import ThrottrOptions
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import MakeCounter
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.hub.hub import Hub
from tmqp_wires.throttr import ClientConnection, Reply, Request, words

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

PORTION_BYTES = 262_144
#: As many keys as a STATS tells of within its limit.
KEYS = 70_000
CLIENTS = 9_900


class Full:
    """A server with many keys, clients and channels, and a stopwatch for its steps."""

    def __init__(self) -> None:
        self.broker = Broker(EngineLimits(max_total_bytes=1 << 33))
        self.hub = Hub(self.broker, PORTION_BYTES)
        self._ids = 0
        self.door = ThrottrDoor(self._new_id, None, ThrottrOptions(dialect="7.3"))
        self.longest_s = 0.0
        self.wire = ClientConnection("7.3", 2)
        for number in range(1, CLIENTS + 1):
            self.hub.open(number, self.door, 1.0)
            self.say(number, subscribe(b"own-%d" % number), subscribe(b"all"))
        self.wire = ClientConnection("7.3", 2)
        for number in range(KEYS):
            key = b"%08d" % number
            self.broker.step(MakeCounter(1, None, "throttr-2", key, number, 600, 4), 1.0)

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:012x}".ljust(32, "0")

    def _step(self, number: int, data: bytes | None) -> bool:
        began = time.thread_time()
        hub = self.hub
        more = hub.go_on(number, 1.0) if data is None else hub.receive(number, data, 1.0)
        pieces = self.hub.take_outbound()
        self.longest_s = max(self.longest_s, time.thread_time() - began)
        self.heard += b"".join([piece for to, piece in pieces if to == number])
        return more

    def say(self, number: int, *requests: Request) -> None:
        self.heard = b""
        self.longest_s = 0.0
        more = self._step(number, b"".join([self.wire.send(each) for each in requests]))
        while more or self.hub.woken:
            self.hub.woken.clear()
            more = self._step(number, None)


@pytest.fixture(scope="module")
def full() -> Iterator[Full]:
    gc.collect()
    gc.disable()
    try:
        yield Full()
    finally:
        gc.enable()


CASES = {
    "LIST": ([Request(words.LIST)], KEYS),
    "STATS": ([Request(words.STATS)], KEYS),
    "CONNECTIONS": ([Request(words.CONNECTIONS)], CLIENTS),
    "CHANNELS": ([Request(words.CHANNELS)], 2 + 2 * CLIENTS),
    "CHANNEL": ([Request(words.CHANNEL, b"all")], CLIENTS),
    "INFO": ([Request(words.INFO)] * 3_000, 0),
    "CONNECTION": ([Request(words.CONNECTION, bytes(16))] * 300, 0),
    "INSERT": ([insert(b"%d" % n) for n in range(3_000)], 0),
    "QUERY": ([Request(words.QUERY, b"%08d" % n) for n in range(5_000)], 0),
    "PUBLISH": ([Request(words.PUBLISH, b"nobody", b"x") for _ in range(3_000)], 0),
}


@pytest.mark.parametrize("name", CASES)
def test_f8_no_request_keeps_others_waiting(full: Full, name: str) -> None:
    asked, items = CASES[name]
    full.say(7, *asked)
    replies = [each for each in full.wire.receive(full.heard) if isinstance(each, Reply)]
    assert len(replies) == len(asked)
    assert len(replies[0].items) == items
    print(f"{name}: {full.longest_s * 1e3:.1f} ms")
    assert full.longest_s <= step_limit_s(compiled=tmqp.compiled)
