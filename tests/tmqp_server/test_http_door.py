"""The HTTP door of a running server, with third-party clients on real sockets."""

from __future__ import annotations

import asyncio
import builtins
import functools
import json
import shlex
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from websockets import Subprotocol
from websockets.sync.client import connect as connect_websocket

from tests.certificates import make_certificate
from tests.project import ROOT
from tests.tmqp_server.peers import greeting, operation
from tmqp.address import Address
from tmqp.codec import FrameDecoder
from tmqp.constants import OP_JOIN, PREAMBLE
from tmqp.models import QueueOptions
from tmqp_client import connect
from tmqp_server import Server, ServerConfig, running
from tmqp_server.access.roles import parse_access
from tmqp_server.access.tokens import hash_token
from tmqp_server.config import ConfigError, parse_config
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.settings.tls import TlsSettings
from tmqp_server.wiring.doors import Doors

pytestmark = pytest.mark.interop

QUEUE = "/api/v1/channels/orders/queues/1"


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[tuple[Server, str]]:
    """A server, and where it serves HTTP."""
    web = settings.pop("web", {})
    config = parse_config("")
    table = {"listen": ["http://127.0.0.1:0"], **web}
    values = {**config, **_web(table), **settings}
    values.setdefault("listen", (Address("127.0.0.1", 0),))
    async with running(ServerConfig(**values)) as server:
        yield server, server.web_addresses[0]


def _web(table: dict[str, Any]) -> dict[str, Any]:
    lines = ["[web]"]
    for key, value in table.items():
        lines.append(f"{key} = {value!r}")
    return parse_config("\n".join(lines))


async def test_one_queue_is_reached_by_tmqp_and_by_http() -> None:
    async with (
        serving() as (server, url),
        httpx.AsyncClient(base_url=url) as web,
        connect(str(server.addresses[0])) as client,
    ):
        await client.create_queue("orders", 1, status="pull")
        body = bytes(range(256))
        sent = await web.post(f"{QUEUE}/messages", params={"id": "m1"}, content=body)
        assert (sent.status_code, sent.json()) == (201, {"id": "m1"})
        await client.join("orders")
        pulled = [message async for message in client.pull("orders", 1, 5)]
        assert [(each.message_id, each.payload) for each in pulled] == [("m1", body)]
        await client.push("orders", 1, "hello", headers={"Country": "fr"})
        answer = await web.post(f"{QUEUE}/deliveries", params={"max": 5, "wait": 10})
        [item] = answer.json()["items"]
        assert (item["text"], item["headers"]) == ("hello", [["Country", "fr"]])


async def test_large_bodies_go_both_ways_chunked() -> None:
    async with serving() as (server, url), httpx.AsyncClient(base_url=url) as web:
        async with connect(str(server.addresses[0])) as client:
            await client.create_queue("orders", 1, status="pull")
        body = bytes(range(256)) * 2_000

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 10_000):
                yield body[at : at + 10_000]

        for _ in range(3):
            sent = await web.post(f"{QUEUE}/messages", content=pieces())
            assert sent.status_code == 201
        answer = await web.post(f"{QUEUE}/deliveries?max=3")
        assert len(answer.json()["items"]) == 3
        refused = await web.post(f"{QUEUE}/messages", content=b"x" * 2_000_000)
        assert refused.status_code == 413


async def test_a_durable_message_by_http_survives_a_restart(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    async with (
        serving(data=data) as (server, url),
        httpx.AsyncClient(base_url=url) as web,
        connect(str(server.addresses[0])) as client,
    ):
        await client.create_queue("orders", 1, QueueOptions(durable=True), status="pull")
        sent = await web.post(f"{QUEUE}/messages?id=m1", content=b"kept")
        assert sent.status_code == 201
    # It needs no HTTP to be read again.
    config = ServerConfig(listen=(Address("127.0.0.1", 0),), data=data)
    async with running(config) as server, connect(str(server.addresses[0])) as client:
        await client.join("orders")
        pulled = [message async for message in client.pull("orders", 1, 5)]
        assert [(each.message_id, each.payload) for each in pulled] == [("m1", b"kept")]


async def test_events_are_streamed() -> None:
    async with serving() as (server, url), connect(str(server.addresses[0])) as client:
        await client.create_queue("orders", 1, status="push")
        host, _, port = url.removeprefix("http://").partition(":")
        target = "/api/v1/events?kind=MessageProduced&channel=orders&queue=1"
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(f"GET {target} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            data = b""
            while b":\n\n" not in data:
                data += await stream.receive()
            assert b"Content-Type: text/event-stream" in data
            await client.push("orders", 1, "x", message_id="m1")
            while b"event: MessageProduced\ndata: " not in data or b'"m1"' not in data:
                data += await stream.receive()


async def test_tmqp_is_spoken_through_a_real_websocket_client() -> None:
    def speak(url: str) -> bytes:
        target = url.replace("http", "ws", 1) + "/api/v1/ws"
        protocols = [Subprotocol("tmqp")]
        with connect_websocket(target, subprotocols=protocols, compression=None) as web:
            assert web.subprotocol == "tmqp"
            web.send(greeting("web"))
            data = b""
            decoder = FrameDecoder()
            web.send(operation(OP_JOIN, "orders").raw)
            while len(decoder.feed(data.removeprefix(PREAMBLE))) < 2:
                decoder = FrameDecoder()
                data += web.recv()  # type: ignore[operator]
            web.ping().wait(10.0)
            return data

    async with serving() as (_, url):
        assert b"web" in await anyio.to_thread.run_sync(speak, url)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_curl_publishes_and_takes() -> None:
    def curl(*words: str) -> str:
        done = subprocess.run(
            ["curl", "-sS", "--max-time", "20", *words], capture_output=True, text=True, check=True
        )
        return done.stdout

    async with serving() as (server, url), connect(str(server.addresses[0])) as client:
        await client.create_queue("orders", 1, status="pull")
        big = "x" * 100_000  # curl asks for 100 Continue
        run = anyio.to_thread.run_sync
        await run(lambda: curl("--data-binary", big, f"{url}{QUEUE}/messages?id=m1"))
        raw = ("-X", "POST", "-H", "Accept: application/octet-stream", f"{url}{QUEUE}/deliveries")
        assert await run(lambda: curl(*raw)) == big


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_queue_of_the_guide_gives_its_messages_to_curl() -> None:
    """Nobody had declared it, so its messages were pushed, and taking them was answered 409."""
    page = (ROOT / "docs" / "guides" / "plain_http.md").read_text(encoding="utf-8")
    toml, shell = (page.split(f"```{kind}\n")[1].partition("\n```")[0] for kind in ("toml", "sh"))
    values = parse_config(toml.replace(":2680", ":0"))
    said: list[str] = []
    async with running(ServerConfig(**values, listen=(Address("127.0.0.1", 0),))) as server:
        for line in shell.splitlines():
            words = shlex.split(line.replace("http://127.0.0.1:2680", server.web_addresses[0]))
            command = [words[0], "-sS", "--fail", "--max-time", "20", *words[1:]]
            run = functools.partial(
                subprocess.run, command, capture_output=True, text=True, check=True
            )
            said.append((await anyio.to_thread.run_sync(run)).stdout)
    assert '"id"' in said[0]
    assert [json.loads(each)["items"][0]["text"] for each in said[1:]] == ["hello", "hello"]


async def test_a_token_decides_who_may_publish() -> None:
    access = parse_access(
        {
            "roles": {"clerk": {"rights": ["push"], "channels": ["orders"]}},
            "tokens": [{"name": "ann", "hash": hash_token("s3cret"), "roles": ["clerk"]}],
        }
    )
    async with serving(access=access) as (_, url):
        for auth, target, status in (
            (None, "orders", 401),
            (("", "wrong"), "orders", 401),
            (("", "s3cret"), "orders", 201),
            (("", "s3cret"), "bills", 403),
        ):
            async with httpx.AsyncClient(base_url=url, auth=auth) as web:
                sent = await web.post(f"/api/v1/channels/{target}/queues/1/messages", content=b"x")
                assert sent.status_code == status, (auth, target)
        async with httpx.AsyncClient(base_url=url) as web:
            bearer = {"Authorization": "Bearer s3cret"}
            sent = await web.post(f"{QUEUE}/messages", content=b"x", headers=bearer)
            assert sent.status_code == 201


async def test_http_is_served_over_tls_and_unix_sockets(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    path = tmp_path / "web.sock"
    tls = TlsSettings(certificate=str(certificate), key=str(key))
    web = {"listen": ["https://127.0.0.1:0", f"unix:{path}"]}
    async with serving(tls=tls, web=web) as (server, url):
        assert url.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        local = url.replace("127.0.0.1", "localhost")
        async with httpx.AsyncClient(verify=context) as client:
            assert (await client.get(f"{local}/healthz")).text == "alive\n"
        by_path = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=by_path, base_url="http://here") as client:
            assert (await client.get("/healthz")).text == "alive\n"
        assert len(server.web_addresses) == 2


async def test_a_slow_loris_is_given_up_while_others_are_served() -> None:
    async with serving(web={"head_timeout_s": 1.0}) as (_, url):
        host, _, port = url.removeprefix("http://").partition(":")
        lorises = [socket.create_connection((host, int(port))) for _ in range(20)]
        try:
            for loris in lorises:
                loris.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
            async with httpx.AsyncClient(base_url=url) as web:
                assert (await web.get("/healthz")).status_code == 200
            for loris in lorises:
                loris.settimeout(20.0)
                answer = await anyio.to_thread.run_sync(loris.recv, 65_536)
                assert answer.startswith(b"HTTP/1.1 408 ")
        finally:
            for loris in lorises:
                loris.close()


def test_the_door_runs_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test_one_queue_is_reached_by_tmqp_and_by_http())
        runner.run(test_events_are_streamed())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[web]\nlisten = ["tmq://127.0.0.1:1"]', "begin with http://"),
        ("[web]\nlisten = 5", "must be a list"),
        ('[web]\nlisten = ["http://127.0.0.1:70000"]', "port"),
        ("[web]\nmax_body_byte = 1", "max_body_bytes"),
        ("[web]\nmax_body_bytes = 0", "max_body_bytes must be positive"),
        ("[web]\nmax_body_bytes = 'x'", "must be a number"),
        ('[web]\nlisten = ["http://0.0.0.0:1"]', "allow_remote"),
        ('[web]\nlisten = ["https://127.0.0.1:1"]', "certificate"),
    ],
)
def test_each_mistake_in_the_table_web_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ServerConfig(**parse_config(text))


def test_without_its_packages_the_table_web_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real: Callable[..., Any] = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("tmqp_server.doors.http.door"):
            raise ModuleNotFoundError("No module named 'h11'", name="h11")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    config = ServerConfig(**parse_config('[web]\nlisten = ["http://127.0.0.1:0"]'))
    with pytest.raises(ConfigError, match=r"h11: install tmqp\[http\]"):
        Doors(config, DoorRegistry(), lambda: "", 0.0)
