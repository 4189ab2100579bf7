"""nsqd and nsqlookupd by HTTP on real sockets, one server telling the other what it has."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from tmqp.address import Address
from tmqp_server import Server, ServerConfig, running
from tmqp_server.config import ConfigError
from tmqp_server.settings.doors import DoorSettings

pytestmark = pytest.mark.anyio

ANY = (Address("127.0.0.1", 0),)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


@asynccontextmanager
async def serving(*doors: tuple[str, dict[str, Any]]) -> AsyncIterator[Server]:
    settings = [DoorSettings(name, ANY, options=options) for name, options in doors]
    async with running(ServerConfig(listen=(), doors=tuple(settings))) as server:
        yield server


def url_of(server: Server, protocol: str) -> str:
    """Where a server serves a protocol by HTTP."""
    (address,) = server.door_addresses(protocol)
    return address.replace(protocol, "http", 1)


async def answered(client: httpx.AsyncClient, url: str, part: str) -> None:
    """Wait until a part is in what an address answers.

    :raises TimeoutError: when it never is.
    """
    with anyio.fail_after(10.0):
        while part not in (await client.get(url)).text:  # noqa: ASYNC110 - another server says it
            await anyio.sleep(0.02)


async def test_a_topic_is_found_at_the_lookupd_and_goes_with_its_server() -> None:
    async with (
        serving(("nsqlookupd", {}), ("nsqlookupd-http", {})) as lookupd,
        httpx.AsyncClient() as client,
    ):
        (tcp,) = lookupd.door_addresses("nsqlookupd")
        there = url_of(lookupd, "nsqlookupd-http")
        options = {
            "broadcast_address": "10.0.0.1",
            "nsqlookupd_tcp_addresses": [tcp.removeprefix("nsqlookupd://")],
        }
        async with serving(("nsq", {}), ("nsqd-http", options)) as nsqd:
            here = url_of(nsqd, "nsqd-http")
            assert (await client.post(f"{here}/pub?topic=t", content=b"x")).text == "OK"
            assert (await client.post(f"{here}/channel/create?topic=t&channel=c")).text == ""
            await answered(client, f"{there}/channels?topic=t", '["c"]')
            (producer,) = (await client.get(f"{there}/lookup?topic=t")).json()["producers"]
            assert producer["broadcast_address"] == "10.0.0.1"
            await client.post(f"{there}/channel/create?topic=new&channel=archive")
            await client.post(f"{here}/pub?topic=new", content=b"x")
            stats = f"{here}/stats?format=json&topic=new&include_mem=0&include_clients=0"
            await answered(client, stats, '"channel_name":"archive","depth":1')
            option = f"{here}/config/nsqlookupd_tcp_addresses"
            assert (await client.put(option, content=b"[]")).json() == []
            await answered(client, f"{there}/nodes", '{"producers":[]}')
            given = json.dumps([f"127.0.0.1:{free_port()}", tcp.partition("//")[2]]).encode()
            assert len((await client.put(option, content=given)).json()) == 2
            await answered(client, f"{there}/lookup?topic=t", '"hostname":')
        await answered(client, f"{there}/nodes", '{"producers":[]}')
        assert (await client.get(f"{there}/topics")).json() == {"topics": ["new", "t"]}


async def test_a_plain_door_sends_clients_to_the_one_with_tls() -> None:
    async with (
        serving(("nsqd-http", {"https_port": 4152})) as nsqd,
        httpx.AsyncClient() as client,
    ):
        for method, path in [("GET", "/ping"), ("POST", "/pub?topic=t"), ("GET", "/nope")]:
            answer = await client.request(method, url_of(nsqd, "nsqd-http") + path)
            assert answer.status_code == 403
            assert answer.content == b'{"message": "TLS_REQUIRED", "https_port": 4152}'


@pytest.mark.parametrize(
    ("protocol", "options", "reason"),
    [
        ("nsqlookupd", {"old_names": True}, "there is no option 'old_names'"),
        ("nsqlookupd-http", {"old_name": True}, "did you mean old_names"),
        ("nsqlookupd", {"version": 1}, "version must be a text"),
        ("nsqd-http", {"nsqlookupd_tcp_addresses": "a:1"}, "must be a list of texts"),
        ("nsqd-http", {"mem_queue_sice": 1}, "did you mean mem_queue_size"),
    ],
)
async def test_mistakes_in_options(protocol: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with serving((protocol, options)):
            pass
