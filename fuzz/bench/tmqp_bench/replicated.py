"""A group of three servers on three servers of etcd, beside one server with a disk of its own."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import anyio

from tmqp.errors import TmqpError
from tmqp.models import QueueOptions
from tmqp_bench.broker.processes import free_port
from tmqp_client import FAIL_OVER, Client, connect

__all__ = ["add_arguments", "run"]

_HELP: Final = """\
Pushes messages of 100 bytes into a durable queue, so many at a time, each until it is confirmed:
into one server with a data directory, and into a group of three servers on three servers of etcd,
all on this machine and one disk.  Then the leader of the group is killed (-9) while messages are
pushed: the gap is the longest time without a confirm.  Ratios count, not the numbers: three
machines have three disks, and a network between them.
"""
_PAYLOAD: Final = bytes(100)
_WAIT_S: Final = 60.0
#: For so long messages are pushed after a leader was killed.
_AFTER_KILL_S: Final = 8.0
#: Those of docs/guides/high-availability.md.
_ETCD: Final = (
    "--snapshot-count=500",
    "--snapshot-catchup-entries=200",
    "--heartbeat-interval=50",
    "--election-timeout=500",
    "--log-level=error",
)


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "replicated",
        help="a group of servers on etcd, against one server",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--etcd", help="the program etcd, 3.6 or newer (default: in the path)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--in-flight", type=int, default=256, help="pushes at a time")
    parser.add_argument("--kills", type=int, default=5, help="of leaders")
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: here)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a line for each."""
    etcd = arguments.etcd or shutil.which("etcd")
    if etcd is None:
        print("there is no etcd in the path: name it by --etcd")
        return 2
    with (
        tempfile.TemporaryDirectory(dir=arguments.directory or Path.cwd()) as place,
        ExitStack() as on,
    ):
        folder = Path(place)
        local = on.enter_context(_server(folder, "local"))
        alone = anyio.run(_pushed, [local], arguments.seconds, arguments.in_flight)
        print(f"one server     {_shown(alone, arguments.seconds)}")
        log = f"etcd://{','.join(on.enter_context(_etcd(etcd, folder)))}/bench"
        group = [on.enter_context(_server(folder, each, log)) for each in "abc"]
        made = anyio.run(_pushed, group, arguments.seconds, arguments.in_flight)
        print(f"a group        {_shown(made, arguments.seconds)}")
        print(f"ratio          {len(made) / max(len(alone), 1):.2f}")
        for _ in range(arguments.kills):
            gap_s = anyio.run(_gap, group, arguments.in_flight)
            print(f"leader killed  {gap_s:.2f} s without a confirm")
    return 0


def _shown(times_s: list[float], seconds: float) -> str:
    ordered = sorted(times_s) or [0.0]
    middle, high = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return (
        f"{len(times_s) / seconds:8,.0f} messages/s   p50 {middle * 1000:7.1f} ms"
        f"   p99 {high * 1000:7.1f} ms"
    )


class _Running:
    """A server that is started again whenever it ends."""

    def __init__(self, command: list[str], environment: dict[str, str], address: str) -> None:
        self.address = address
        self._command = command
        self._environment = environment
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def revive(self) -> None:
        """Start it again, if it has ended."""
        if self.process.poll() is not None:
            self.process = self._start()

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def _server(folder: Path, name: str, log: str = "") -> Iterator[_Running]:
    address = f"tmq://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "tmqp_server", "-l", address, "--data", str(folder / name)]
    if log:
        command += ["--replicate", log]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TMQP_SERVER_REPLICATION__NODE": name,
    }
    if not log:
        del environment["TMQP_SERVER_REPLICATION__NODE"]
    server = _Running(command, environment, address)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def _etcd(program: str, folder: Path) -> Iterator[list[str]]:
    ports = [(free_port(), free_port()) for _ in range(3)]
    members = ",".join(f"n{at}=http://127.0.0.1:{peer}" for at, (_, peer) in enumerate(ports))
    processes = []
    for at, (client, peer) in enumerate(ports):
        urls = (f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}")
        command = [program, f"--name=n{at}", f"--data-dir={folder / f'etcd{at}'}", *_ETCD]
        command += [f"--listen-client-urls={urls[0]}", f"--advertise-client-urls={urls[0]}"]
        command += [f"--listen-peer-urls={urls[1]}", f"--initial-advertise-peer-urls={urls[1]}"]
        command.append(f"--initial-cluster={members}")
        processes.append(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
    try:
        end = time.monotonic() + _WAIT_S
        for client, _ in ports:
            while not _listens(client):
                if time.monotonic() > end:
                    raise TimeoutError("etcd does not listen")
                time.sleep(0.1)
        yield [f"127.0.0.1:{client}" for client, _ in ports]
    finally:
        for each in processes:
            each.kill()
            each.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


async def _prepared(servers: list[_Running]) -> None:
    """Make the queue, as soon as somebody takes clients."""
    with anyio.fail_after(_WAIT_S):
        async with connect([each.address for each in servers], reconnect=FAIL_OVER) as client:
            options = QueueOptions(durable=True, request_acknowledge=False)
            await client.create_queue("bench", 1, options, status="pull")


async def _pushed(servers: list[_Running], seconds: float, in_flight: int) -> list[float]:
    """How long each push took that was confirmed within so many seconds."""
    times_s: list[float] = []
    await _prepared(servers)

    async def push(client: Client) -> None:
        while True:
            began = time.monotonic()
            await client.push("bench", 1, _PAYLOAD)
            times_s.append(time.monotonic() - began)

    async with (
        connect([each.address for each in servers], reconnect=FAIL_OVER) as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(in_flight):
            tasks.start_soon(push, client)
        await anyio.sleep(seconds)
        tasks.cancel_scope.cancel()
    return times_s


async def _gap(servers: list[_Running], in_flight: int) -> float:
    """The longest time without a confirm around the death of the leader, in seconds."""
    confirmed: list[float] = []
    await _prepared(servers)

    async def push(client: Client) -> None:
        while True:
            try:
                await client.push("bench", 1, _PAYLOAD)
                confirmed.append(time.monotonic())
            except TmqpError:
                await anyio.sleep(0.01)

    async with (
        connect([each.address for each in servers], reconnect=FAIL_OVER) as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(in_flight):
            tasks.start_soon(push, client)
        await anyio.sleep(2.0)
        leads = str(client.address)
        killed = time.monotonic()
        for each in servers:
            if each.address == leads:
                each.kill()
                each.revive()
        await anyio.sleep(_AFTER_KILL_S)
        tasks.cancel_scope.cancel()
    times = [killed, *[each for each in confirmed if each > killed], killed + _AFTER_KILL_S]
    return max(after - before for before, after in pairwise(times))
