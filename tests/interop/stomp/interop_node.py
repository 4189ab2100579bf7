"""Clients of STOMP in JavaScript, stompit and @stomp/stompjs, at our server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.interop.building import CACHE, EXPECTED, npm
from tests.tmqp_server.stomp_clients import config, port_of
from tmqp_server import running

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(200),
    pytest.mark.xdist_group("npm"),
    pytest.mark.skipif(
        bool(EXPECTED) and not {"stompit", "stompjs"} & set(EXPECTED),
        reason="only other clients are asked for",
    ),
]

SOURCES: Final = Path(__file__).parent / "node"
_MOST_S: Final = 120


@pytest.fixture(scope="module")
def packages() -> Path:
    """A folder with the packages; the tests are skipped where that is not possible."""
    folder = CACHE / "stomp-node"
    npm("stompit", SOURCES, folder)
    return folder


async def said_by(program: str, packages: Path) -> dict[str, Any]:
    """What a program has found, once it is done."""
    async with running(config()) as server:
        words = ["node", str(SOURCES / program), "127.0.0.1", str(port_of(server, "stomp"))]
        with anyio.fail_after(_MOST_S):
            done = await anyio.run_process(words, cwd=packages, check=False)
    found, last = done.stdout.decode().splitlines() or ["", ""]
    assert last == "done", done.stderr.decode()
    said: dict[str, Any] = json.loads(found)
    return said


async def test_stompit(packages: Path) -> None:
    found = await said_by("stompit.js", packages)
    assert found["heard"] == ["one", "two", 'three: \\ "ü"', "in a transaction", "two"]
    assert found["colour"] == "red: \\ and\nblue"


async def test_stompjs(packages: Path) -> None:
    assert await said_by("stompjs.js", packages) == {
        "news": ["now"],
        "answer": "answer",
        "bytes": [0, 1, 255],
        "colour": "a: \\ b",
    }
