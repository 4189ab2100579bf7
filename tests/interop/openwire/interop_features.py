"""The list of features of JMS 1.1 and of ActiveMQ, with ActiveMQ's own clients: at our server, and
at ActiveMQ itself, with the same verdict line by line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.interop.building import EXPECTED
from tests.interop.openwire.clients import VERSIONS, example, features, reference
from tests.tmqp_server.test_doors import config
from tests.tmqp_server.test_small_doors import port_of
from tmqp_server import running

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("Java"),
    pytest.mark.skipif(
        bool(EXPECTED) and not any(each.startswith("activemq") for each in EXPECTED),
        reason="only other clients are asked for",
    ),
]

#: A list of features takes about a minute.
_MOST_S: Final = 300
#: What our server does not do, and why; it is in the guide, too.
_NOT_SERVED: Final[dict[str, str]] = {}


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: a list takes a while."""
    return "asyncio"


def verdicts(said: bytes) -> dict[str, str]:
    """What became of each feature."""
    lines = said.decode("utf-8", "replace").splitlines()
    assert lines, "the program said nothing"
    assert lines[-1].startswith("END "), lines[-1]
    return dict(line.split("\t", 1) for line in lines[:-1])


async def said_at_our_server(command: tuple[list[str], Path], data: Path | None = None) -> bytes:
    """What a program prints that gets our server's URL."""
    words, folder = command
    door = {"protocol": "openwire", "listen": ["127.0.0.1:0"]}
    async with running(config(door, data=data)) as server:
        url = f"tcp://127.0.0.1:{port_of(server, 'openwire')}"
        with anyio.fail_after(_MOST_S):
            done = await anyio.run_process([*words, url], cwd=folder, check=False)
    return done.stdout


async def at_our_server(version: str, data: Path | None = None) -> dict[str, str]:
    """What a version of the client finds."""
    return verdicts(await said_at_our_server(features(version), data))


@contextmanager
def activemq() -> Iterator[str]:
    """ActiveMQ; gives its URL."""
    words, folder = reference()
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


def at_activemq(version: str) -> dict[str, str]:
    """What a version of the client finds at ActiveMQ."""
    words, folder = features(version)
    with activemq() as url:
        done = subprocess.run(
            [*words, url], cwd=folder, capture_output=True, check=False, timeout=_MOST_S
        )
    return verdicts(done.stdout)


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_features_with_a_client(version: str) -> None:
    found = await at_our_server(version)
    assert len(found) > 100
    assert {name: said for name, said in found.items() if said != "ok"}.keys() == _NOT_SERVED.keys()


async def test_the_verdicts_are_those_of_activemq(tmp_path: Path) -> None:
    """With a data directory: every queue is durable."""
    theirs = await anyio.to_thread.run_sync(at_activemq, VERSIONS[0])
    ours = await at_our_server(VERSIONS[0], tmp_path)
    assert ours.keys() == theirs.keys()
    different = {
        name: (said, ours[name])
        for name, said in theirs.items()
        if (said == "ok") != (ours[name] == "ok")
    }
    assert different.keys() == _NOT_SERVED.keys(), different


async def test_the_guides_program() -> None:
    assert await said_at_our_server(example()) == b"3 x tea are on their way\n"
