"""Watch real messages go through a real broker: what ``make demo`` runs.

It starts ``tmqp-server`` as a process of its own, replays a recorded exchange of the original
client against it over TCP and compares the answers, then streams a file of JSON lines through a
push queue to two consumers that acknowledge every message.  It ends by itself and leaves nothing
behind; the exit status is 0 only if everything was as it should be.
"""

from __future__ import annotations

import hashlib
import json
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
from tmqp.testing.replay import Player
from tmqp.testing.vectors import parse_exchange
from tmqp_client import connect
from tmqp_conformance.link import connect as open_link

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__: list[str] = []

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "tests" / "data" / "captures"
LINES = ROOT / "examples" / "data" / "timezone-transitions.jsonl"

#: The original client connects twice, creates queues, pushes, and gets each kind of acknowledge.
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
CHANNEL = "timezones"
QUEUE = 1
IN_FLIGHT = 500
START_SECONDS = 20
STREAM_SECONDS = 50


@contextmanager
def running_server() -> Iterator[Address]:
    """Start the server on a free port, stop it at the end."""
    command = [sys.executable, "-m", "tmqp_server", "-l", "tmq://127.0.0.1:0"]
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
        process.terminate()
        status = process.wait(START_SECONDS)
        process.stdout.close()
        if status:
            raise SystemExit(f"the server ended with status {status}")


def replay(address: Address) -> bool:
    """Say what the original client said; compare what the server answers."""
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
    """What one consumer saw."""

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
    """Push every line of the file and wait for its acknowledge; consume it twice."""
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


async def bounded_stream(address: Address) -> bool:
    """Stream, or give up after a time."""
    with anyio.move_on_after(STREAM_SECONDS) as scope:
        return await stream(address)
    if scope.cancelled_caught:
        print(f"  gave up after {STREAM_SECONDS} seconds")
    return False


def main() -> int:
    """Run all of it."""
    build = "compiled" if tmqp.compiled else "interpreted"
    print(f"tmqp {tmqp.__version__}, {build} build, Python {sys.version.split()[0]}")
    print("\n1. A broker starts")
    with running_server() as address:
        print("\n2. A recorded exchange of the original client is replayed over TCP")
        replayed = replay(address)
        print("\n3. A file is streamed through a push queue to two consumers")
        streamed = anyio.run(bounded_stream, address)
    print("\n4. The broker stopped cleanly")
    print("\nAll as it should be." if replayed and streamed else "\nSomething differs: see above.")
    return 0 if replayed and streamed else 1


if __name__ == "__main__":
    sys.exit(main())
