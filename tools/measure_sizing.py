"""Measures how much memory and disk messages and connections need in a server.

The figures of docs/operate/sizing.md: ``python -m tools.measure_sizing``.  It starts a server,
reads the size of the process from the system, and compares it with the server's own account.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from tmqp.models import QueueOptions
from tmqp_client import Client, connect

__all__ = ["SIZES", "Figures", "Server", "main", "measure", "measure_connections", "started"]

#: The bodies that are measured.
SIZES: Final = (100, 1_000, 10_000)
_WARM: Final = 1_000
_WARM_CONNECTIONS: Final = 20


@dataclass(frozen=True, slots=True)
class Figures:
    """Measured sizes, in bytes.

    ``size`` is that of a body; ``resident`` and ``charged`` are the memory of each message besides
    its body, according to the system and to the server; ``disk`` is that of each message with its
    body.
    """

    size: int
    resident: float
    charged: float
    disk: float


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], address: str, data: Path | None) -> None:
        self.address = address
        self._process = process
        self._data = data

    def resident(self) -> int:
        """Return the resident memory of the process in bytes."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        (line,) = [each for each in text.splitlines() if each.startswith("VmRSS:")]
        return int(line.split()[1]) * 1_024

    def disk(self) -> int:
        """Return the size of its store on disk in bytes."""
        if self._data is None:
            return 0
        return sum(each.stat().st_blocks * 512 for each in self._data.rglob("*") if each.is_file())


@asynccontextmanager
async def started(*, durable: bool) -> AsyncIterator[Server]:
    """Run a server, with a store or without one."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--data", folder] if durable else []
        command = [sys.executable, "-m", "tmqp_server", "-l", "tmq://127.0.0.1:0"]
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs meanwhile
            [*command, "--log-level", "warning", *options], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if " ready on " not in line:
                raise SystemExit("the server did not start")
            address = line.split(" ready on ")[1].split()[0]
            yield Server(process, address, Path(folder) if durable else None)
        finally:
            process.terminate()
            process.communicate()


async def _fill(client: Client, count: int, size: int) -> None:
    """Push messages into a queue without consumers."""
    body = b"x" * size
    # One at a time, because messages that arrive and wait together need less.
    for _ in range(count):
        await client.push("fill", 1, body)


async def _queue(client: Client, *, durable: bool) -> None:
    options = QueueOptions(durable=durable or None, message_limit=0)
    await client.create_queue("fill", 1, options, status="paused")


async def _charged(client: Client) -> int:
    return (await client.server_information()).memory_bytes


async def measure(count: int, size: int) -> Figures:
    """Fill a queue in memory and one on disk.

    :param count: the number of messages.
    :param size: the size of their bodies.
    """
    async with started(durable=False) as server, connect(server.address) as client:
        await _queue(client, durable=False)
        # Code and data that the first request and messages load must not count for messages.
        await _charged(client)
        await _fill(client, _WARM, size)
        before, charged = server.resident(), await _charged(client)
        await _fill(client, count, size)
        resident = (server.resident() - before) / count - size
        told = (await _charged(client) - charged) / count - size
    async with started(durable=True) as server, connect(server.address) as client:
        await _queue(client, durable=True)
        before = server.disk()
        await _fill(client, count, size)
        disk = (server.disk() - before) / count
    return Figures(size, resident, told, disk)


async def measure_connections(count: int) -> tuple[float, float]:
    """Measure the memory of an idle connection in bytes, according to the system and to the
    server."""
    async with started(durable=False) as server, AsyncExitStack() as stack:
        first = await stack.enter_async_context(connect(server.address))
        for _ in range(_WARM_CONNECTIONS):
            await stack.enter_async_context(connect(server.address))
        before, charged = server.resident(), await _charged(first)
        for _ in range(count):
            await stack.enter_async_context(connect(server.address))
        resident = (server.resident() - before) / count
        told = (await _charged(first) - charged) / count
    return resident, told


async def main() -> None:
    """Measure, and print the page's table."""
    reader = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    reader.add_argument("--messages", type=int, default=20_000)
    reader.add_argument("--connections", type=int, default=500)
    given = reader.parse_args()
    print(
        "| size of a message (bytes) | memory beyond the size | charged beyond the size | on disk |"
    )
    print("|---|---|---|---|")
    for size in SIZES:
        found = await measure(given.messages, size)
        row = (found.size, found.resident, found.charged, found.disk)
        print("| " + " | ".join(f"{each:,.0f}" for each in row) + " |")
    resident, told = await measure_connections(given.connections)
    print(f"\nAn idle connection: {resident:,.0f} bytes of memory, {told:,.0f} charged.")


if __name__ == "__main__":
    anyio.run(main)
