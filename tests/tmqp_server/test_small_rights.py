"""What the clients of Simple MQ and goMS may do: of all rights, one is missing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.tmqp_server.all_but_one import all_but_one
from tests.tmqp_server.test_small_doors import GOMS, SMQ, Lines
from tmqp_server import running
from tmqp_server.access import rights


@asynccontextmanager
async def two_doors(door: dict[str, Any], missing: str) -> AsyncIterator[tuple[Lines, Lines]]:
    """A client with every right, and one of another door with all but one."""
    async with running(all_but_one({**door, "listen": ["127.0.0.1:0"]}, missing)) as server:
        ports = [int(each.rpartition(":")[2]) for each in server.door_addresses()]
        full, limited = [await Lines.dial(port) for port in ports[-2:]]
        yield full, limited
        for each in (full, limited):
            await each.close()


async def messages_and_counts(client: Lines, lines: bytes) -> tuple[list[bytes], dict[str, int]]:
    """Say something, and ask for statistics: what has come before them, and they."""
    await client.say(lines + b"S\n")
    found: list[bytes] = []
    while not found or found[-1][:1] != b"{":
        found.append(await client.line())
    return found[:-1], json.loads(found[-1])


@pytest.mark.parametrize(
    "missing", [rights.PUSH, rights.JOIN, rights.SEE_CHANNEL, rights.REMOVE_QUEUE]
)
async def test_a_line_of_simple_mq_needs_a_right(missing: str) -> None:
    async with two_doors(SMQ, missing) as (full, limited):
        assert await messages_and_counts(full, b"M:jobs:1\n") == ([], {"jobs": 1})
        _, told = await messages_and_counts(limited, b"M:jobs:2\n")
        there = 1 if missing == rights.PUSH else 2
        assert told == ({} if missing == rights.SEE_CHANNEL else {"jobs": there})
        assert await messages_and_counts(full, b"") == ([], {"jobs": there})
        await messages_and_counts(limited, b"M:new:1\n")
        _, told = await messages_and_counts(full, b"M:new:2\n")
        assert told["new"] == 1 + (missing != rights.PUSH)
        came, _ = await messages_and_counts(limited, b"C:jobs\n")
        assert came == ([] if missing == rights.JOIN else [b"1", b"2"][:there])


@pytest.mark.parametrize("missing", [rights.PUSH, rights.JOIN, rights.REMOVE_QUEUE])
async def test_a_message_of_goms_needs_a_right(missing: str) -> None:
    register = b'{"messagetype":"register","topics":["news","nix"]}\n'
    send = b'{"messagetype":"send","topics":["news"],"data":"%s"}\n'
    async with two_doors(GOMS, missing) as (full, limited):
        for each in (full, limited):
            await each.say(register)
            assert json.loads(await each.line())["error"] == "nix"
        if missing == rights.JOIN:
            assert json.loads(await limited.line())["error"] == "news", "as if there were none"
        await limited.say(send % b"1")
        told = b""
        while missing != rights.JOIN and not told:  # it may not have joined yet
            await full.say(send % b"2")
            with anyio.move_on_after(0.2):
                told = await limited.line()
        assert not told or json.loads(told)["data"] == "2"
        await limited.say(send % b"3" + b'{"messagetype":"close"}\n')
        if missing != rights.PUSH:
            assert [json.loads(await full.line())["data"] for _ in range(2)] == ["1", "3"]
        await full.say(register)
        assert json.loads(await full.line())["errorcode"] == "001001"
