"""Servers that drain: on real sockets, by signals, by the command and by a client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from click.testing import CliRunner

from tests.project import ROOT
from tests.waiting import until
from tmqp.models import QueueOptions
from tmqp_client import Client, ConnectFailed, OperationFailed, connect
from tmqp_client.cli import cli
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.wiring.app import Server, running

pytestmark = pytest.mark.cold

PATIENCE_S = 20.0
IN_TURN = QueueOptions(request_acknowledge=True, wait_for_acknowledge=True)


def config_of(**more: Any) -> ServerConfig:
    return ServerConfig(**read_config({"listen": ["tmq://127.0.0.1:0"], **more}))


def admin_url(server: Server) -> str:
    (place,) = server.door_addresses("admin")
    return "http://" + place.split("://", 1)[1]


async def keep_pushing(client: Client) -> None:
    """Push until that fails."""
    while True:
        await client.push("c", 1, b"more")


async def status(url: str) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/readyz")).status_code


async def test_what_is_in_hand_is_finished_and_nothing_else_begins() -> None:
    config = config_of(admin={"listen": "127.0.0.1:0"})
    async with running(config) as server:
        there = str(server.addresses[0])
        async with connect(there, name="p") as producer, connect(there, name="c") as consumer:
            await producer.create_queue(
                "c",
                1,
                QueueOptions(request_acknowledge=True, wait_for_acknowledge=True),
                status="push",
            )
            await producer.push_many("c", 1, [b"one", b"two"])
            assert await status(admin_url(server)) == 200
            async with consumer.consume("c", 1) as messages:
                message = await anext(aiter(messages))
                server.drain(stops=False)
                assert await status(admin_url(server)) == 503
                with pytest.raises(OperationFailed) as refused:
                    await producer.push("c", 1, b"three")
                assert refused.value.code == 503
                with pytest.raises(ConnectFailed):
                    async with connect(there, reconnect=None):
                        raise AssertionError("nobody is let in")
                await message.ack()
                with anyio.fail_after(PATIENCE_S):
                    await until(lambda: server.world.draining and not server.sessions)
        assert await status(admin_url(server)) == 503, "operators are served to the end"


async def test_what_is_not_acknowledged_in_time_is_there_after_a_restart_and_not_counted(
    tmp_path: Path,
) -> None:
    config = config_of(data=str(tmp_path), drain_timeout_s=0.2)
    options = QueueOptions(durable=True, request_acknowledge=True, wait_for_acknowledge=True)
    async with running(config) as server, connect(str(server.addresses[0])) as client:
        await client.create_queue("c", 1, options, status="push")
        await client.push("c", 1, b"one")
        async with client.consume("c", 1) as messages:
            await anext(aiter(messages))
            server.drain(stops=True)
            with anyio.fail_after(PATIENCE_S):
                await server.wait_until_over()
    async with (
        running(config) as server,
        connect(str(server.addresses[0])) as client,
        client.consume("c", 1) as messages,
    ):
        with anyio.fail_after(PATIENCE_S):
            message = await anext(aiter(messages))
        assert message.payload == b"one"
        await message.ack()


async def test_the_command_drains_a_server_and_needs_the_right() -> None:
    roles = {"op": {"rights": ["manage-server"]}, "other": {"rights": ["push", "see-nodes"]}}
    tokens = [{"name": each, "token": each * 16, "roles": [each]} for each in roles]
    async with running(config_of(access={"roles": roles, "tokens": tokens})) as server:
        there = str(server.addresses[0])

        async def tmqp(*words: str) -> tuple[int, str]:
            command = ["drain", "-a", there, *words]
            ended = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(cli, command))
            return ended.exit_code, ended.output

        async with connect(there, token="other" * 16) as client:
            with pytest.raises(OperationFailed) as failed:
                await client.drain(stop=True)
            assert failed.value.code == 401
        code, said = await tmqp("--token", "other" * 16)
        assert (code, "401" in said) == (1, True)
        with anyio.fail_after(PATIENCE_S):
            assert await tmqp("--token", "op" * 16, "--stop") == (0, "draining\ndrained\n")
            await server.wait_until_over()


@contextmanager
def program(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and where it listens."""
    with subprocess.Popen(
        [sys.executable, "-m", "tmqp_server", "-l", "tmq://127.0.0.1:0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMQP_SERVER_DRAIN_TIMEOUT_S": "60"},
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield process, line.split(" ready on ")[1].strip()
        finally:
            process.kill()


async def test_sigterm_waits_for_acknowledges_and_a_second_one_does_not() -> None:
    with program() as (process, there):
        async with connect(there, reconnect=None) as client:
            await client.create_queue("c", 1, IN_TURN, status="push")
            await client.push("c", 1, b"one")
            async with client.consume("c", 1) as messages:
                await anext(aiter(messages))
                process.send_signal(signal.SIGTERM)
                with pytest.raises(OperationFailed):
                    await keep_pushing(client)
                assert process.poll() is None
                process.send_signal(signal.SIGTERM)
                with anyio.fail_after(PATIENCE_S):
                    await until(lambda: not client.connected)
        out, err = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=PATIENCE_S))
        assert process.returncode == 0
        assert out == ""
        assert "draining: 1 deliveries are unacknowledged; 60 s at most" in err
        assert "SIGTERM: ending at once" in err
        assert "Traceback" not in err
