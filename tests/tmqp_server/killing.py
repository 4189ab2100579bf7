"""Servers that are killed without warning while they are busy, again and again, at any door.

Each cycle clients keep a server busy until enough messages are confirmed, then its process is
killed.  The next one must have everything that was confirmed and not answered for, and nothing
that nobody has pushed.  :class:`KilledDoor` says how the clients of a protocol do that.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, Protocol

import anyio
import httpx

from tmqp_client import ClientError, OperationError

__all__ = [
    "END",
    "GONE",
    "ForeignDoor",
    "KilledDoor",
    "Ledger",
    "Process",
    "Speaker",
    "kill_again_and_again",
]

#: What is pushed last, so that whoever takes everything knows the end.
END: Final = b"0"
#: What clients find when a server is killed.
GONE: Final = (
    ClientError,
    OperationError,
    OSError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    httpx.HTTPError,
)
#: Messages that are pushed at once.
PORTION: Final = 20


class Ledger:
    """What the clients know."""

    def __init__(self) -> None:
        self.next = 1
        self.confirmed: set[int] = set()
        self.seen: set[int] = set()
        self.repeated = 0
        #: What was sent together, to come whole or not at all, and is not confirmed.
        self.together: list[list[int]] = []

    def take(self, count: int) -> list[int]:
        """Numbers for further messages."""
        self.next += count
        return list(range(self.next - count, self.next))

    def receive(self, payload: bytes) -> bool:
        """Note a message that came; whether it came before."""
        number = int(payload)
        assert 0 < number < self.next, "invented"
        repeated = number in self.seen
        self.repeated += repeated
        self.seen.add(number)
        return repeated

    def check(self) -> None:
        """All that was confirmed has come, and of what was sent together all or nothing."""
        lost = self.confirmed - self.seen
        assert not lost, f"{len(lost)} confirmed messages are lost: {sorted(lost)[:10]}"
        for numbers in self.together:
            came = len(self.seen.intersection(numbers))
            assert came in (0, len(numbers)), f"{came} of the transaction {numbers} have come"
        self.together.clear()


class Process:
    """A server process; ``options`` are further words of its command.

    TMQP is spoken at ``socket`` in its folder, whatever else it listens to.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.address = f"unix:{folder}/socket"
        command = [sys.executable, "-m", "tmqp_server", "-l", self.address]
        command += ["--data", str(folder / "data"), "--log-level", "error", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert " ready on " in ready, ready

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


class KilledDoor:
    """How the clients of one protocol keep a server busy, and take what is there afterwards."""

    name = "tmqp"
    #: Its table of the configuration, ``{folder}`` for where its sockets are; empty for none.
    table = ""
    #: So many messages must be confirmed in each life.
    confirmed = 100

    def start(self, folder: Path) -> Process:
        """A server with this door."""
        if not self.table:
            return Process(folder)
        file = folder / "server.toml"
        file.write_text(self.table.format(folder=folder))
        return Process(folder, "--config", str(file))

    async def prepare(self, process: Process) -> None:
        """Make what the messages go into."""
        raise NotImplementedError

    async def work(
        self, process: Process, ledger: Ledger, enough: anyio.Event, chance: random.Random
    ) -> None:
        """Push, and perhaps consume, until the server is gone."""
        raise NotImplementedError

    async def drain(self, process: Process, ledger: Ledger) -> None:
        """Take everything there is."""
        raise NotImplementedError


async def _cycle(door: KilledDoor, process: Process, ledger: Ledger, chance: random.Random) -> None:
    """Keep the server busy, and kill it in the middle."""
    enough = anyio.Event()

    async def busy() -> None:
        try:
            await door.work(process, ledger, enough, chance)
        except* GONE:
            pass
        assert enough.is_set(), "the clients ended before the server did"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as work:
            work.start_soon(busy)
            await enough.wait()
            await anyio.sleep(chance.random() * 0.05)
            process.kill()


async def kill_again_and_again(door: KilledDoor, folder: Path, cycles: int, seed: int) -> str:
    """So many cycles; what happened, in a line."""
    chance = random.Random(seed)
    ledger = Ledger()
    process = door.start(folder)
    began = time.monotonic()
    try:
        await door.prepare(process)
        for _ in range(cycles):
            await _cycle(door, process, ledger, chance)
            process = door.start(folder)
            with anyio.fail_after(60):
                await door.drain(process, ledger)
            ledger.check()
    finally:
        process.kill()
    return (
        f"{door.name}: {cycles} kills in {time.monotonic() - began:.0f} s:"
        f" {len(ledger.confirmed)} confirmed, {ledger.next - 1} pushed, {len(ledger.seen)} seen,"
        f" {ledger.repeated} of them again, 0 lost"
    )


# --- Doors of other protocols ---------------------------------------------------------------------


class Speaker(Protocol):
    """A connection."""

    @property
    def together(self) -> bool:
        """Whether what it pushes next comes whole or not at all."""

    async def push(self, payloads: list[bytes]) -> None:
        """Push messages; they are confirmed when this returns."""

    async def take(self) -> list[bytes]:
        """Take and answer for some messages, one at least."""


class ForeignDoor(KilledDoor):
    """A door whose clients push a portion after the other, and consume after a kill only."""

    connections = 4

    def speaking(self, process: Process) -> AbstractAsyncContextManager[Speaker]:
        """A connection."""
        raise NotImplementedError

    def taking(self, process: Process) -> AbstractAsyncContextManager[Speaker]:
        """A connection that is to consume."""
        return self.speaking(process)

    async def work(
        self, process: Process, ledger: Ledger, enough: anyio.Event, chance: random.Random
    ) -> None:
        start = len(ledger.confirmed)

        async def one() -> None:
            async with self.speaking(process) as speaker:
                while True:
                    numbers = ledger.take(chance.randint(1, PORTION))
                    if speaker.together:
                        ledger.together.append(numbers)
                    await speaker.push([b"%d" % number for number in numbers])
                    ledger.confirmed.update(numbers)
                    if len(ledger.confirmed) >= start + self.confirmed:
                        enough.set()

        async with anyio.create_task_group() as tasks:
            for _ in range(self.connections):
                tasks.start_soon(one)

    async def drain(self, process: Process, ledger: Ledger) -> None:
        async with self.speaking(process) as speaker:
            await speaker.push([END])
        async with self.taking(process) as speaker:
            while True:
                for payload in await speaker.take():
                    if payload == END:
                        return
                    ledger.receive(payload)
