"""Servers that drain: on real sockets, by signals, by the command and by a client."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import httpx
import pytest
from click.testing import CliRunner

from tests.project import ROOT
from tests.waiting import until
from tmqp.models import QueueOptions
from tmqp_client import (
    Client,
    ConnectFailed,
    ConnectionLost,
    OperationError,
    OperationFailed,
    connect,
)
from tmqp_client.cli import cli
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.running import running

pytestmark = pytest.mark.cold

PATIENCE_S = 20.0
DURABLE = QueueOptions(durable=True, request_acknowledge=True)
POST = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
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


async def test_a_drain_under_load_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """What was confirmed is there, and what was acknowledged does not come again."""
    config = config_of(data=str(tmp_path), drain_timeout_s=5)
    confirmed: set[bytes] = set()
    acknowledged: set[bytes] = set()
    async with running(config) as server, anyio.create_task_group() as tasks:
        there = str(server.addresses[0])

        async def produce(name: int) -> None:
            async with connect(there, reconnect=None) as client:
                with suppress(OperationError, ConnectionLost):
                    for number in itertools.count():
                        body = b"%d %d" % (name, number)
                        await client.push("c", 1, body)
                        confirmed.add(body)

        async def consume() -> None:
            async with connect(there, reconnect=None) as client:
                with suppress(ConnectionLost):
                    async with client.consume("c", 1) as messages:
                        async for message in messages:
                            if await message.ack():
                                acknowledged.add(message.payload)

        async with connect(there) as client:
            await client.create_queue("c", 1, DURABLE, status="push")
        for name in range(3):
            tasks.start_soon(produce, name)
        tasks.start_soon(consume)
        await until(lambda: len(acknowledged) > 50)
        server.drain(stops=True)
        with anyio.fail_after(PATIENCE_S):
            await server.wait_until_over()
    left: list[bytes] = []
    async with running(config) as server:
        (queue,) = server.broker.queues()
        async with (
            connect(str(server.addresses[0])) as client,
            client.consume("c", 1) as messages,
        ):
            with anyio.fail_after(PATIENCE_S):
                for _ in range(queue.waiting):
                    message = await messages.get()
                    left.append(message.payload)
                    await message.ack()
    assert not acknowledged & set(left)
    assert len(left) == len(set(left))
    assert confirmed <= acknowledged | set(left)


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


#: By door: what a client says before the drain and what it is told; what it says then, and what is
#: in the answer.
WORDS = {
    "http": (b"", b"", POST % b"/api/v1/channels/d/queues/5/messages", b"HTTP/1.1 503 "),
    "nsqd-http": (b"", b"", POST % b"/pub?topic=t", b"HTTP/1.1 503 "),
    "nsq": (b"  V2SUB t c\n", b"OK", b"PUB t\n\0\0\0\1x", b"E_PUB_FAILED"),
    "stomp": (
        b"CONNECT\naccept-version:1.2\nhost:x\n\n\0",
        b"CONNECTED",
        b"SEND\ndestination:/queue/a\nreceipt:7\n\nhi\0",
        b"the server is busy, or out of room (503)",
    ),
}


async def hear(stream: anyio.abc.SocketStream, words: bytes) -> bytes:
    """What a server says up to these words."""
    data = b""
    with anyio.fail_after(PATIENCE_S):
        while words not in data:
            data += await stream.receive()
    return data


@pytest.mark.parametrize("door", WORDS)
async def test_each_door_refuses_and_says_the_end_in_its_own_way(door: str) -> None:
    before, greeting, asks, answer = WORDS[door]
    config = config_of(doors=[{"protocol": door, "listen": ["127.0.0.1:0"]}])
    async with running(config) as server, connect(str(server.addresses[0])) as client:
        await client.create_queue("c", 1, IN_TURN, status="push")
        await client.push("c", 1, b"in hand")
        (place,) = server.door_addresses(door)
        host, _, port = place.split("://")[1].partition(":")
        async with (
            client.consume("c", 1) as messages,
            await anyio.connect_tcp(host, int(port)) as peer,
        ):
            message = await anext(aiter(messages))
            if before:
                await peer.send(before)
                await hear(peer, greeting)
            await until(lambda: server.sessions == 2)
            server.drain(stops=False)
            await peer.send(asks)
            await hear(peer, answer)
            await message.ack()
            with pytest.raises(anyio.EndOfStream):
                await hear(peer, b"nothing that is ever said")


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


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the server is a process of its own
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
