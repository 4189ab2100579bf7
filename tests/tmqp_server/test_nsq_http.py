"""nsqd and nsqlookupd by HTTP on real sockets, one server telling the other what it has."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import httpx
import pytest

from tests.certificates import make_certificate
from tests.ports import free_port
from tests.waiting import until
from tmqp.address import Address
from tmqp_server import Server, ServerConfig, running
from tmqp_server.access.roles import parse_access
from tmqp_server.access.tokens import hash_token
from tmqp_server.config import ConfigError
from tmqp_server.settings.doors import DoorSettings
from tmqp_server.settings.tls import TlsSettings
from tmqp_wires.nsq.lookup import answer

pytestmark = pytest.mark.anyio

ANY = (Address("127.0.0.1", 0),)


@asynccontextmanager
async def serving(
    *doors: tuple[str, dict[str, Any]], data: str | None = None
) -> AsyncIterator[Server]:
    settings = [DoorSettings(name, ANY, options=options) for name, options in doors]
    async with running(ServerConfig(listen=(), doors=tuple(settings), data=data)) as server:
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


async def test_a_lookupd_that_takes_no_registrations_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer(b"E_INVALID not here"))
            await anyio.sleep_forever()

    port = free_port()
    place = f"127.0.0.1:{port}"
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, refuse)
        async with serving(("nsqd-http", {"nsqlookupd_tcp_addresses": [place]})):
            await until(lambda: "E_INVALID" in caplog.text)
        tasks.cancel_scope.cancel()
    found = [each for each in caplog.records if each.name == "tmqp_server.nsq"]
    assert [(each.levelname, each.getMessage()) for each in found] == [
        ("WARNING", f"nsqlookupd {place}: the lookupd answered E_INVALID not here")
    ]


async def test_messages_that_a_restart_brought_back_counted_as_new_ones(tmp_path: Path) -> None:
    doors: tuple[tuple[str, dict[str, Any]], ...] = (("nsq", {}), ("nsqd-http", {}))
    query = "topic=t&channel=c"
    async with httpx.AsyncClient() as client:

        async def rows(server: Server) -> list[tuple[int, int]]:
            url = f"{url_of(server, 'nsqd-http')}/stats?format=json&topic=t"
            (topic,) = (await client.get(url)).json()["topics"]
            return [(row["message_count"], row["depth"]) for row in (topic, *topic["channels"])]

        async with serving(*doors, data=str(tmp_path)) as server:
            url = url_of(server, "nsqd-http")
            for target in ("/topic/create?topic=t", f"/channel/create?{query}"):
                assert (await client.post(url + target)).text == ""
            assert (await client.post(f"{url}/mpub?topic=t", content=b"a\nb\nc")).text == "OK"
            assert await rows(server) == [(3, 0), (3, 3)]
        async with serving(*doors, data=str(tmp_path)) as server:
            assert await rows(server) == [(0, 0), (0, 3)]
            url = url_of(server, "nsqd-http")
            assert (await client.post(f"{url}/pub?topic=t", content=b"d")).text == "OK"
            assert await rows(server) == [(1, 0), (1, 4)]


async def test_a_plain_door_sends_clients_to_the_one_with_tls() -> None:
    async with (
        serving(("nsqd-http", {"https_port": 4152})) as nsqd,
        httpx.AsyncClient() as client,
    ):
        for method, path in [("GET", "/ping"), ("POST", "/pub?topic=t"), ("GET", "/nope")]:
            answer = await client.request(method, url_of(nsqd, "nsqd-http") + path)
            assert answer.status_code == 403
            assert answer.content == b'{"message": "TLS_REQUIRED", "https_port": 4152}'


async def test_https_serves_the_same_topics(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    tls = TlsSettings(certificate=str(certificate), key=str(key))
    secure = (Address("127.0.0.1", 0, tls=True),)
    doors = (
        DoorSettings("nsqd-http", ANY),
        DoorSettings("nsqd-http", secure, tls=True, options={"https_port": 4152}),
    )
    context = ssl.create_default_context(cafile=str(certificate))
    async with (
        running(ServerConfig(listen=(), doors=doors, tls=tls)) as server,
        httpx.AsyncClient(verify=context) as client,
    ):
        plain, encrypted = server.door_addresses("nsqd-http")
        here = plain.replace("nsqd-http", "http", 1)
        there = encrypted.replace("nsqd-http+tls", "https", 1).replace("127.0.0.1", "localhost")
        assert (await client.post(f"{there}/pub?topic=t", content=b"x")).text == "OK"
        query = "/stats?format=json&topic=t&include_mem=0"
        assert '"depth":1' in (await client.get(here + query)).text
        port = int(plain.rpartition(":")[2])
        assert (await client.get(f"{there}/info")).json()["http_port"] == port


async def test_a_token_decides_who_may_publish_and_who_may_look() -> None:
    access = parse_access(
        {
            "roles": {"clerk": {"rights": ["push", "create-queue"], "channels": ["orders"]}},
            "tokens": [{"name": "ann", "hash": hash_token("s3cret"), "roles": ["clerk"]}],
        }
    )
    doors = (DoorSettings("nsqd-http", ANY), DoorSettings("nsqlookupd-http", ANY))
    async with (
        running(ServerConfig(listen=(), doors=doors, access=access)) as server,
        httpx.AsyncClient() as client,
    ):
        here, lookupd = url_of(server, "nsqd-http"), url_of(server, "nsqlookupd-http")
        good = {"Authorization": "Bearer s3cret"}
        for method, url, headers, status, body in [
            ("POST", f"{here}/pub?topic=orders", {}, 401, '{"message":"UNAUTHORIZED"}'),
            ("POST", f"{here}/pub?topic=orders", good, 200, "OK"),
            ("POST", f"{here}/mpub?topic=orders", good, 200, "OK"),
            ("POST", f"{here}/pub?topic=bills", good, 403, '{"message":"FORBIDDEN"}'),
            ("POST", f"{here}/mpub?topic=bills", good, 403, '{"message":"FORBIDDEN"}'),
            ("POST", f"{here}/topic/delete?topic=orders", good, 403, '{"message":"FORBIDDEN"}'),
            ("GET", f"{here}/stats", good, 403, '{"message":"FORBIDDEN"}'),
            ("GET", f"{here}/ping", {}, 200, "OK"),
            ("GET", f"{lookupd}/topics", {}, 401, '{"message":"UNAUTHORIZED"}'),
            ("GET", f"{lookupd}/topics", good, 200, '{"topics":[]}'),
        ]:
            content = b"one\ntwo" if method == "POST" else b""
            answer = await client.request(method, url, headers=headers, content=content)
            assert (answer.status_code, answer.text) == (status, body), (url, headers)


@pytest.mark.parametrize(
    ("protocol", "options", "reason"),
    [
        ("nsqlookupd", {"old_names": True}, "there is no option 'old_names'"),
        ("nsqlookupd-http", {"old_name": True}, "did you mean old_names"),
        ("nsqlookupd", {"version": 1}, "version must be a string"),
        ("nsqd-http", {"nsqlookupd_tcp_addresses": "a:1"}, "must be a list of strings"),
        ("nsqd-http", {"mem_queue_sice": 1}, "did you mean mem_queue_size"),
    ],
)
async def test_mistakes_in_options(protocol: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with serving((protocol, options)):
            pass
