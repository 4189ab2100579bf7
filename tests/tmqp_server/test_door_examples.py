"""The examples of small doors say what happens, with the server that their first lines ask for."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import pytest

from tests.project import ROOT
from tests.tmqp_server.test_small_doors import config, port_of
from tmqp_server import running

PRINTED = {
    "send_again": [
        "dead letters: order 1, order 2",
        "would go to orders/1: 2",
        "moved: 2",
        "orders/1: 3 waiting",
        "dead/1: 0 waiting",
    ],
    "websocket_client": [
        "ChannelCreated: orders",
        "order 1: done",
        "order 2: done",
        "order 3: done",
    ],
    "simple_mq": ["Simple MQ: resize 1", "TMQP: resize 2", "TMQP: resize 3"],
    "goms": ["goMS: error 001001: gossip", "goMS: rain", "TMQP: rain", "TMQP: sunshine"],
    "throttr": [
        "call 1: allowed",
        "call 2: allowed",
        "call 3: allowed",
        "call 4: refused",
        "TMQP: ann 0",
    ],
}
DOORS: dict[str, dict[str, Any]] = {
    "send_again": {"protocol": "admin"},
    "websocket_client": {"protocol": "admin"},
    "simple_mq": {"protocol": "smq"},
    "goms": {"protocol": "goms", "options": {"topics": ["weather"]}},
    "throttr": {"protocol": "throttr"},
}


@pytest.mark.parametrize("name", PRINTED)
async def test_an_example_says_what_happens(name: str) -> None:
    door = {**DOORS[name], "listen": ["127.0.0.1:0"]}
    async with running(config(door)) as server:
        foreign = f"127.0.0.1:{port_of(server, str(door['protocol']))}"
        command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), foreign]
        with anyio.fail_after(60):
            done = await anyio.run_process([*command, str(server.addresses[0])])
    assert done.stdout.decode().splitlines() == PRINTED[name]
