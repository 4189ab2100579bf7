"""Rates and refused log-ins, on real sockets."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.waiting import until
from tmqp_client import ConnectFailed, connect
from tmqp_server.config import ConfigError, ServerConfig, read_config
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.reloading import reload_config
from tmqp_server.wiring.running import running

pytestmark = pytest.mark.cold


def config_of(**more: Any) -> ServerConfig:
    return ServerConfig(**read_config({"listen": ["tmq://127.0.0.1:0"], **more}))


def waits(server: Server) -> dict[str, int]:
    turn = server.world.turn
    assert turn is not None
    return turn.tally.waits


async def test_a_client_that_is_too_fast_waits_and_loses_nothing() -> None:
    config = config_of(rates={"client_messages_per_s": 100, "burst_s": 0.1})
    async with running(config) as server, connect(str(server.addresses[0])) as client:
        await client.create_queue("c", 1, status="push")
        began = anyio.current_time()
        with anyio.fail_after(20):
            for _ in range(6):
                await client.push_many("c", 1, [b"x"] * 10)
        assert anyio.current_time() - began > 0.3
        assert (await client.queue_information("c", 1)).messages == 60
        assert waits(server)["client_messages"] >= 4


async def test_rates_are_reloaded_for_connections_that_are_open() -> None:
    async with running(config_of()) as server, connect(str(server.addresses[0])) as client:
        await client.push("c", 1, b"x")
        slow = {"client_bytes_per_s": 10, "burst_s": 0.1}
        assert reload_config(server, lambda: config_of(rates=slow))
        with anyio.move_on_after(0.05):
            await client.push("c", 1, b"x" * 1_000)
        await until(lambda: waits(server).get("client_bytes", 0) > 0)
        assert reload_config(server, config_of)
        with anyio.fail_after(5):
            await client.push("c", 1, b"x" * 1_000)


async def test_wrong_tokens_are_tried_one_at_a_time_however_many_connections_bring_them() -> None:
    access = {"roles": {"r": {"rights": ["push"]}}, "tokens": [{"token": "right", "roles": ["r"]}]}
    async with running(config_of(access=access)) as server:
        there = str(server.addresses[0])

        async def guess(number: int) -> None:
            with pytest.raises(ConnectFailed):
                async with connect(there, token=f"wrong {number}", reconnect=None):
                    raise AssertionError("that was not it")

        await guess(0)
        began = anyio.current_time()
        with anyio.move_on_after(1.2):
            async with anyio.create_task_group() as tasks:
                for number in range(1, 40):
                    tasks.start_soon(guess, number)
        turn = server.world.turn
        assert turn is not None
        assert anyio.current_time() - began < 5
        assert turn.tally.doors["tmqp"].denied <= 4, "after 0.25, 0.75 and 1.75 s"
        assert waits(server)["log_ins"] >= 30


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"client_bytes_per_s": -1}, "rates.client_bytes_per_s is a number a second"),
        ({"burst_s": 0}, "rates.burst_s must be a positive number"),
        ({"exempt": ["10.0.0.0/99"]}, "rates.exempt: "),
        ({"exempt": [7]}, "rates.exempt is a list of networks"),
        ({"client_byte_per_s": 1}, "rates.client_bytes_per_s"),
    ],
)
def test_a_rate_that_is_none_is_named(rates: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        config_of(rates=rates)
