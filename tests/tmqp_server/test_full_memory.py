"""A real server whose memory is full: pushes are refused, consumers go on, nothing is lost."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anyio
import pytest

from tests.tmqp_server.killing import Process
from tmqp_client import BatchFailed, Client, connect

CAP_BYTES = 32 * 1024 * 1024
SIZE = 100
#: More than have room, and half of what would have if they took nothing beyond their own bytes.
TOO_MANY = 120_000
ROUND = 2_000


def resident_bytes(number: int) -> int:
    """The memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{number}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


async def fill(client: Client) -> int:
    """Push until the server refuses; how many it took."""
    taken = 0
    while taken < TOO_MANY:
        payloads = [b"%0100d" % number for number in range(taken, taken + ROUND)]
        failed: BatchFailed | None = None
        try:
            await client.push_many("c", 1, payloads)
        except BatchFailed as error:
            failed = error
        if failed is not None:
            report = failed.report
            assert "503 busy" in str(failed)
            assert report.confirmed + report.failed == ROUND
            # In order: nothing is taken in behind what was refused.
            assert report.failures[0].index == report.confirmed
            return taken + report.confirmed
        taken += ROUND
    return taken


async def empty(address: str, expected: int) -> list[int]:
    """Consume so many messages."""
    found: list[int] = []
    async with connect(address) as client, client.consume("c", 1) as messages:
        async for message in messages:
            found.append(int(message.payload))
            if len(found) == expected:
                break
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="how large a process is, it says in /proc")
@pytest.mark.cold
def test_f2_memory_is_bounded_and_what_was_taken_in_comes_out(tmp_path: Path) -> None:
    settings = tmp_path / "server.toml"
    settings.write_text(f"[broker]\nmax_total_bytes = {CAP_BYTES}\n")
    process = Process(tmp_path, "--config", str(settings))

    figures: list[int] = []
    found: list[int] = []

    async def main() -> None:
        with anyio.fail_after(120):
            async with connect(process.address) as client:
                await client.create_queue("c", 1, status="round-robin")
                before = resident_bytes(process.process.pid)
                taken = await fill(client)
                grown = resident_bytes(process.process.pid) - before
                found.extend(await empty(process.address, taken))
                figures.extend((taken, grown, await fill(client)))

    try:
        anyio.run(main)
    finally:
        process.kill()
    taken, grown, again = figures
    assert 0 < taken < TOO_MANY
    assert found == list(range(taken))
    assert again == taken, "all of it is free again"
    print(f"{taken:,} messages, grown by {grown:,} bytes of {CAP_BYTES:,}")
    assert grown <= CAP_BYTES * 1.1
