"""The load on a client library: the same for each, counted where a program would count.

One process holds the producing and the consuming client, in one asyncio loop; a *link* is the pair
of them.  What a message took is its age when the consuming side's code gets it (``stream``), when
its producer's call returns (``confirmed``, ``request``).  So a library pays for everything it does
on the way, and for nothing it does later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

__all__ = ["KINDS", "Figures", "Link", "Meter", "Shape", "measure"]

#: What a load may do.  ``batch`` is ``confirmed`` by the way the library has for many at once.
KINDS: Final = ("stream", "confirmed", "batch", "request")
#: Seconds without any message after which the load gives up.
_STALL_S: Final = 10.0
_STAMP_BYTES: Final = 8


class Link(Protocol):
    """A producing and a consuming client, connected.  Only what its kind needs is called."""

    async def send(self, payload: bytes) -> None:
        """Publish; the other side calls ``taken``."""

    async def confirm(self, payload: bytes) -> None:
        """Publish, and return when the server has confirmed."""

    async def confirm_many(self, payloads: list[bytes]) -> None:
        """Publish all, and return when the server has confirmed all."""

    async def ask(self, payload: bytes) -> bytes:
        """Ask the other side, which answers with what it was asked."""


#: Connects: the server's port, the load's kind and window, and what the consuming side calls with
#: each payload.  An asynchronous context manager of a link.
Connect = Callable[[int, str, int, Callable[[bytes], None]], Any]


@dataclass(frozen=True)
class Shape:
    """One load: its kind, how many messages are in progress at most, and for how long."""

    kind: str
    window: int
    payload_bytes: int
    warm_up_s: float
    seconds: float


@dataclass
class Figures:
    """What one run gave; ``latencies_us`` are the percentiles 50, 99 and 99.9."""

    messages: int
    seconds: float
    client_cpu_s: float
    latencies_us: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds


class Meter:
    """Counts what was sent and what has come, and holds the producer back between the two."""

    def __init__(self, window: int) -> None:
        self.sent = 0
        self.done = 0
        self.ages_ns: list[int] = []
        self.over = False
        self._window = window
        self._low = window // 2
        self._room: asyncio.Event | None = None

    def payload(self, rest: bytes) -> bytes:
        """The next payload: it begins with the time."""
        self.sent += 1
        return time.perf_counter_ns().to_bytes(_STAMP_BYTES, "big") + rest

    def taken(self, payload: bytes) -> None:
        """The consuming side has a message: it counts, with its age."""
        self.ages_ns.append(time.perf_counter_ns() - int.from_bytes(payload[:_STAMP_BYTES], "big"))
        self.arrived(payload)

    def arrived(self, payload: bytes) -> None:
        """The consuming side has a message: it counts."""
        self.done += 1
        if self._room is not None and self.sent - self.done <= self._low:
            self._room.set()
            self._room = None

    async def room(self) -> None:
        """Wait until the consuming side has caught up."""
        while self.sent - self.done >= self._window:
            if self._room is None:
                self._room = asyncio.Event()
            await self._room.wait()


async def measure(connect: Connect, port: int, shape: Shape) -> Figures:
    """Connect, load, count.

    :raises TimeoutError: when nothing moves.
    """
    kind = shape.kind
    meter = Meter(2 * shape.window if kind in {"confirmed", "batch"} else shape.window)
    taken = meter.taken if kind == "stream" else meter.arrived
    async with connect(port, kind, shape.window, taken) as link:
        load = asyncio.create_task(_LOADS[kind](link, meter, shape))
        try:
            await _wait(load, meter, shape.warm_up_s)
            done, cpu_s, began = meter.done, time.process_time(), time.perf_counter()
            meter.ages_ns.clear()
            await _wait(load, meter, shape.seconds)
            seconds = time.perf_counter() - began
            figures = Figures(meter.done - done, seconds, time.process_time() - cpu_s)
            ages = sorted(meter.ages_ns)
            meter.over = True
            _, late = await asyncio.wait([load], timeout=_STALL_S)
            if late:
                raise TimeoutError("messages in flight at the end have not arrived")
            load.result()
        finally:
            load.cancel()
    if not ages:
        raise TimeoutError("no message has come")
    for share in (0.5, 0.99, 0.999):
        figures.latencies_us.append(ages[min(len(ages) - 1, int(share * len(ages)))] / 1_000)
    return figures


async def _wait(load: asyncio.Task[None], meter: Meter, seconds: float) -> None:
    """Let the load run; find out when it stands still or has failed."""
    deadline = time.perf_counter() + seconds
    seen, moved = meter.done, time.perf_counter()
    while (now := time.perf_counter()) < deadline:
        await asyncio.sleep(min(0.1, deadline - now))
        if load.done():
            load.result()
            raise TimeoutError("the load has ended early")
        if meter.done != seen:
            seen, moved = meter.done, time.perf_counter()
        elif time.perf_counter() - moved > _STALL_S:
            raise TimeoutError(f"nothing has moved for {_STALL_S:g} s")


async def _stream(link: Link, meter: Meter, shape: Shape) -> None:
    rest = bytes(shape.payload_bytes - _STAMP_BYTES)
    while not meter.over:
        await meter.room()
        await link.send(meter.payload(rest))


async def _confirmed(link: Link, meter: Meter, shape: Shape) -> None:
    rest = bytes(shape.payload_bytes - _STAMP_BYTES)

    async def caller() -> None:
        while not meter.over:
            await meter.room()
            payload = meter.payload(rest)
            began = time.perf_counter_ns()
            await link.confirm(payload)
            meter.ages_ns.append(time.perf_counter_ns() - began)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(shape.window):
            tasks.create_task(caller())


async def _batch(link: Link, meter: Meter, shape: Shape) -> None:
    rest = bytes(shape.payload_bytes - _STAMP_BYTES)
    while not meter.over:
        await meter.room()
        payloads = [meter.payload(rest) for _ in range(shape.window)]
        began = time.perf_counter_ns()
        await link.confirm_many(payloads)
        meter.ages_ns.append(time.perf_counter_ns() - began)


async def _request(link: Link, meter: Meter, shape: Shape) -> None:
    rest = bytes(shape.payload_bytes - _STAMP_BYTES)

    async def caller() -> None:
        while not meter.over:
            payload = meter.payload(rest)
            began = time.perf_counter_ns()
            answer = await link.ask(payload)
            meter.ages_ns.append(time.perf_counter_ns() - began)
            if answer != payload:
                raise ValueError("the answer belongs to another question")
            meter.arrived(answer)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(shape.window):
            tasks.create_task(caller())


_LOADS: Final = {
    "stream": _stream,
    "confirmed": _confirmed,
    "batch": _batch,
    "request": _request,
}
