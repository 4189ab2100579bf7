"""Programs with lists of checks, run at our server and at ActiveMQ; the verdict on each check."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.interop.building import EXPECTED
from tests.interop.openwire.clients import VERSIONS, Command, reference
from tests.tmqp_server.test_doors import config
from tests.tmqp_server.test_small_doors import port_of
from tmqp_server import running

__all__ = [
    "MARKS",
    "activemq",
    "at_activemq",
    "at_our_server",
    "different",
    "failures",
    "said_at_our_server",
    "verdicts",
]

MARKS: Final = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("Java"),
    pytest.mark.skipif(
        bool(EXPECTED) and not any(each.startswith("activemq") for each in EXPECTED),
        reason="only other clients are asked for",
    ),
]
#: A list of checks takes about a minute.
_MOST_S: Final = 300

#: What became of each check, by its name: ``ok``, or ``no:`` and the exception.
Verdicts = dict[str, str]


def verdicts(said: bytes) -> Verdicts:
    """What became of each check."""
    lines = said.decode("utf-8", "replace").splitlines()
    assert lines, "the program said nothing"
    assert lines[-1].startswith("END "), lines[-1]
    return dict(line.split("\t", 1) for line in lines[:-1])


def failures(found: Verdicts) -> Verdicts:
    """The checks that failed."""
    return {name: said for name, said in found.items() if said != "ok"}


def different(ours: Verdicts, theirs: Verdicts) -> dict[str, tuple[str, str]]:
    """The checks that only one of two brokers passes, with what both say."""
    assert ours.keys() == theirs.keys()
    return {
        name: (said, ours[name])
        for name, said in theirs.items()
        if (said == "ok") != (ours[name] == "ok")
    }


async def said_at_our_server(command: Command, data: Path | None = None) -> bytes:
    """What a program prints that gets our server's URL."""
    words, folder = command
    door = {"protocol": "openwire", "listen": ["127.0.0.1:0"]}
    async with running(config(door, data=data)) as server:
        url = f"tcp://127.0.0.1:{port_of(server, 'openwire')}"
        with anyio.fail_after(_MOST_S):
            done = await anyio.run_process([*words, url], cwd=folder, check=False)
    return done.stdout


async def at_our_server(command: Command, data: Path | None = None) -> Verdicts:
    """What a list of checks finds."""
    return verdicts(await said_at_our_server(command, data))


@contextmanager
def activemq(version: str = VERSIONS[0]) -> Iterator[str]:
    """ActiveMQ; gives its URL."""
    words, folder = reference(version)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def at_activemq(command: Command, version: str = VERSIONS[0]) -> Verdicts:
    """What a list of checks finds at ActiveMQ, in a version of it."""
    words, folder = command
    with activemq(version) as url:
        done = subprocess.run(
            [*words, url], cwd=folder, capture_output=True, check=False, timeout=_MOST_S
        )
    return verdicts(done.stdout)
