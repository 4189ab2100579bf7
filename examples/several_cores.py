"""Several servers on one machine, with the channels divided among them by their names.

    python examples/several_cores.py                     as many servers as there are cores
    python examples/several_cores.py --servers 1 2 4  compare: the same load on these numbers of
    servers

A server uses one core.  To use more cores, start several servers, and let every client find the
server of a channel in the same way: here by a checksum of the channel's name.  Each channel is on
one server, so its order and its guarantees are those of a single server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Self
from zlib import crc32

import anyio

from tmqp_client import Client, connect

CHANNELS = [f"orders-{number}" for number in range(16)]


def server_of(channel: str, addresses: Sequence[str]) -> str:
    """Return the address of the server that has a channel; the same for every client."""
    return addresses[crc32(channel.encode()) % len(addresses)]


@contextmanager
def servers(count: int) -> Iterator[dict[str, int]]:
    """Start this number of servers, each on its own core if the system allows that; return their
    addresses, with their processes' numbers."""
    command = [sys.executable, "-m", "tmqp_server", "--listen", "tmq://127.0.0.1:0"]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(count)
    ]
    try:
        addresses = {}
        for number, process in enumerate(started):
            if hasattr(os, "sched_setaffinity"):
                cores = sorted(os.sched_getaffinity(0))
                os.sched_setaffinity(process.pid, {cores[number % len(cores)]})
            assert process.stdout is not None
            addresses[process.stdout.readline().split()[-1]] = process.pid
        yield addresses
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def processor_s(processes: Iterable[int]) -> float:
    """Return how many seconds of processor time the processes have used; 0 if the system does not
    report it."""
    ticks = 0
    for number in processes:
        told = Path(f"/proc/{number}/stat")
        if told.exists():
            user, system = told.read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
            ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


class Divided:
    """Clients of all servers, one each; ``of`` has the one for a channel."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._clients: dict[str, Client] = {}
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for address in self._addresses:
            client = await self._opened.enter_async_context(connect(address))
            self._clients[address] = client
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._opened.aclose()

    def of(self, channel: str) -> Client:
        """The client that is connected to the server of a channel."""
        return self._clients[server_of(channel, self._addresses)]


async def carry(addresses: Sequence[str], messages: int) -> float:
    """Push this number of messages into each channel and consume them; return the rate per
    second."""
    async with Divided(addresses) as producers, Divided(addresses) as consumers:
        for channel in CHANNELS:
            await producers.of(channel).create_queue(channel, 1, status="push")

        async def produce(channel: str) -> None:
            client = producers.of(channel)
            for number in range(messages):
                await client.push(channel, 1, b"%d" % number)

        async def consume(channel: str, *, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with consumers.of(channel).consume(channel, 1) as arriving:
                task_status.started()
                number = 0
                async for message in arriving:
                    assert message.payload == b"%d" % number, "a channel keeps its order"
                    number += 1
                    if number == messages:
                        break

        async with anyio.create_task_group() as tasks:
            for channel in CHANNELS:
                await tasks.start(consume, channel)
            begun = time.perf_counter()
            for channel in CHANNELS:
                tasks.start_soon(produce, channel)
        return len(CHANNELS) * messages / (time.perf_counter() - begun)


def main() -> None:
    """Run the same load on each requested number of servers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    usual = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2]
    parser.add_argument("--servers", type=int, nargs="+", default=usual, metavar="COUNT")
    parser.add_argument("--messages", type=int, default=1_000, help="for each channel")
    options = parser.parse_args()
    for count in options.servers:
        with servers(count) as started:
            addresses = [*started]
            before = processor_s(started.values())
            rate = anyio.run(carry, addresses, options.messages)
            used = processor_s(started.values()) - before
        each = used / (len(CHANNELS) * options.messages)
        found = [server_of(channel, addresses) for channel in CHANNELS]
        divided = ", ".join(str(found.count(address)) for address in addresses)
        print(
            f"{count} servers with {divided} channels: {rate:,.0f} messages a second,"
            f" {each * 1e6:.1f} us of the servers for each"
        )


if __name__ == "__main__":
    main()
