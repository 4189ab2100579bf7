"""A healthy client beside an attack: how long its round trips take.

A round trip is a ping through a real socket to a server process of its own.  The quantile is taken
of all of them, a few milliseconds apart; the processor is shared with whatever else the machine
does, so a test that looks at it is marked ``alone``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from tmqp_client import connect

__all__ = ["p99_s", "probe", "server"]

#: Seconds between two round trips.
_PAUSE_S = 0.004


@contextmanager
def server(*options: str) -> Iterator[str]:
    """A server process; yields its address."""
    command = [sys.executable, "-m", "tmqp_server", "-l", "tmq://127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--log-level", "error", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " ready on " in line, line
        yield line.split(" ready on ")[1].split()[0]
    finally:
        process.kill()
        process.communicate()


async def probe(address: str, count: int) -> list[float]:
    """So many round trips of a client that asks for nothing else, in seconds."""
    found: list[float] = []
    async with connect(address, client_id="healthy") as client:
        await client.ping()
        for _ in range(count):
            found.append(await client.ping())
            await anyio.sleep(_PAUSE_S)
    return found


def p99_s(trips: list[float]) -> float:
    """The round trip that one of a hundred exceeds."""
    return sorted(trips)[len(trips) * 99 // 100]
