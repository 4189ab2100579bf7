"""Watch real messages go through a real broker: what ``make demo`` runs.

It starts ``tmqp-server`` as a separate process, replays a recorded exchange of the original client
against it over TCP and compares the answers, then streams a file of JSON lines through a push queue
to two consumers that acknowledge every message.  Finally it pushes the file into a durable queue,
kills the server without warning, restarts it and reads every line back.  It removes its data
directory (``build/demo-data``); the exit status is 0 only if every check passed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

import tmqp
from tmqp.address import Address, parse_address
from tmqp.models import QueueOptions
from tmqp.testing.replay import Player
from tmqp.testing.vectors import parse_exchange
from tmqp_client import connect
from tmqp_conformance.link import connect as open_link

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

__all__: list[str] = []

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "tests" / "data" / "captures"
LINES = ROOT / "examples" / "data" / "timezone-transitions.jsonl"

#: The original client connects twice, creates queues, pushes, and gets each acknowledgement.
EXCHANGES = (
    "real-000-connect-producer",
    "real-001-connect-consumer",
    "real-005-channel-create",
    "real-012-channel-join",
    "real-019-queue-create-default",
    "real-044-push-to-a-joined-consumer",
    "real-045-push-headers-survive",
    "real-049-push-ack-from-the-server-after-receive",
    "real-050-push-ack-from-the-server-after-send",
    "real-051-push-consumer-ack-reaches-the-producer",
    "real-052-push-consumer-nack-with-reason-reaches-the-producer",
    "real-053-push-refused-with-negative-ack",
)
#: Removed before and after.
DATA = Path("build") / "demo-data"
CHANNEL = "timezones"
DURABLE_CHANNEL = "kept"
QUEUE = 1
IN_FLIGHT = 500
START_SECONDS = 20
STREAM_SECONDS = 50


@contextmanager
def running_server(*, killed: bool = False) -> Iterator[Address]:
    """Start the server on a free port; stop or kill it at the end."""
    command = [sys.executable, "-m", "tmqp_server", "-l", "tmq://127.0.0.1:0"]
    command += ["--data", str(DATA)]
    process = subprocess.Popen(
        [*command, "--log-level", "warning"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline().strip()
        if " ready on " not in ready:
            raise SystemExit(f"the server did not start: {ready!r}")
        print(f"  {ready}")
        yield parse_address(ready.rpartition(" ")[2])
    finally:
        if killed:
            process.kill()
        else:
            process.terminate()
        status = process.wait(START_SECONDS)
        process.stdout.close()
        if status and not killed:
            raise SystemExit(f"the server ended with status {status}")


def replay(address: Address) -> bool:
    """Send what the original client sent, and compare the server's answers."""
    player = Player(lambda _number: open_link(address, 1.0))
    compared = matched = 0
    for name in EXCHANGES:
        text = (RECORDINGS / f"{name}.json").read_bytes()
        outcome = player.play(parse_exchange(name, text))
        compared += outcome.compared
        matched += outcome.matched
        print(f"  {'matched' if outcome.matched else 'DIFFERS':8}{name}")
        for difference in outcome.differences:
            print(f"          {difference}")
    player.close()
    print(f"  {matched} of {len(EXCHANGES)} exchanges matched, {compared} answers compared")
    return matched == len(EXCHANGES)


class Tally:
    """What one consumer received."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.digest = hashlib.sha256()
        self.zones: Counter[str] = Counter()

    def add(self, payload: bytes) -> None:
        """Count one message and read it."""
        self.messages += 1
        self.bytes += len(payload)
        self.digest.update(payload)
        self.zones[json.loads(payload)["zone"]] += 1


async def stream(address: Address) -> bool:
    """Push every line of the file, acknowledged, and consume it twice."""
    lines = LINES.read_bytes().splitlines()
    size = sum(map(len, lines))
    print(f"  {LINES.name}: {len(lines):,} lines, {size:,} bytes")
    sent = hashlib.sha256(b"".join(lines)).digest()
    tallies = {"first": Tally(), "second": Tally()}
    ready = {name: anyio.Event() for name in tallies}

    async def consume(name: str) -> None:
        async with (
            connect(str(address), name=name, type="consumer") as client,
            client.consume(CHANNEL, QUEUE) as messages,
        ):
            ready[name].set()
            async for message in messages:
                # Asking for the next message acknowledges this one.
                tallies[name].add(message.payload)
                if tallies[name].messages == len(lines):
                    return

    async with connect(str(address), name="producer", type="producer") as producer:
        await producer.create_channel(CHANNEL)
        await producer.create_queue(CHANNEL, QUEUE, status="push")
        async with anyio.create_task_group() as tasks:
            for name in tallies:
                tasks.start_soon(consume, name)
            for event in ready.values():
                await event.wait()
            began = time.perf_counter()
            await producer.push_many(CHANNEL, QUEUE, lines, in_flight=IN_FLIGHT)
            confirmed = time.perf_counter() - began
        consumed = time.perf_counter() - began

    print(f"  producer   {len(lines):>7,} pushed and confirmed   {len(lines) / confirmed:>9,.0f}/s")
    complete = True
    for name, tally in tallies.items():
        same = tally.digest.digest() == sent
        complete = complete and same
        print(
            f"  {name:<10} {tally.messages:>7,} consumed and acked      "
            f"{tally.messages / consumed:>9,.0f}/s   "
            f"{'every byte in order' if same else 'NOT WHAT WAS SENT'}"
        )
    zone, count = tallies["first"].zones.most_common(1)[0]
    print(f"  (the zone with the most clock changes since 2005 is {zone}: {count})")
    return complete


async def keep(address: Address) -> bool:
    """Push every line into a durable queue, which confirms it when it is on disk."""
    lines = LINES.read_bytes().splitlines()
    async with connect(str(address), name="producer", type="producer") as producer:
        options = QueueOptions(durable=True)
        await producer.create_queue(DURABLE_CHANNEL, QUEUE, options, status="push")
        began = time.perf_counter()
        await producer.push_many(DURABLE_CHANNEL, QUEUE, lines, in_flight=IN_FLIGHT)
        seconds = time.perf_counter() - began
    print(f"  producer   {len(lines):>7,} pushed, synced to disk {len(lines) / seconds:>9,.0f}/s")
    return True


async def read_back(address: Address) -> bool:
    """Consume the stored lines; all must be there, in order."""
    lines = LINES.read_bytes().splitlines()
    got: list[bytes] = []
    async with (
        connect(str(address), name="reader", type="consumer") as client,
        client.consume(DURABLE_CHANNEL, QUEUE) as messages,
    ):
        async for message in messages:
            got.append(message.payload)
            if len(got) == len(lines):
                break
    print(f"  reader     {len(got):>7,} consumed after the kill: ", end="")
    print("every byte in order" if got == lines else "NOT WHAT WAS SENT")
    return got == lines


async def bounded(work: Callable[[Address], Awaitable[bool]], address: Address) -> bool:
    """Run a task with a timeout."""
    with anyio.move_on_after(STREAM_SECONDS) as scope:
        return await work(address)
    if scope.cancelled_caught:
        print(f"  gave up after {STREAM_SECONDS} seconds")
    return False


def main() -> int:
    """Run every part on an empty data directory, which is removed at the end."""
    shutil.rmtree(DATA, ignore_errors=True)
    try:
        return show()
    finally:
        shutil.rmtree(DATA, ignore_errors=True)


def show() -> int:
    """Every part, one after the other."""
    build = "compiled" if tmqp.compiled else "interpreted"
    print(f"tmqp {tmqp.__version__}, {build} build, Python {sys.version.split()[0]}")
    print("\n1. A broker starts")
    with running_server() as address:
        print("\n2. A recorded exchange of the original client is replayed over TCP")
        replayed = replay(address)
        print("\n3. A file is streamed through a push queue to two consumers")
        streamed = anyio.run(bounded, stream, address)
    print("\n4. The broker stopped cleanly; the next one is killed with durable messages in it")
    with running_server(killed=True) as address:
        kept = anyio.run(bounded, keep, address)
    with running_server() as address:
        kept = kept and anyio.run(bounded, read_back, address)
    if not tmqp.compiled:
        print("\nThis was the interpreted build. `make compiled` takes some minutes; the compiled")
        print("broker is two to five times as fast (docs/performance.md).")
    good = replayed and streamed and kept
    print("\nEvery check passed." if good else "\nA check failed: see above.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
