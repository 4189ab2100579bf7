"""The API of a running server, asked over a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import websockets
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket
from websockets.typing import Subprotocol

from tmqp_client import connect
from tmqp_server import Server, ServerConfig, running
from tmqp_server.config import parse_config

pytestmark = pytest.mark.interop

CONFIG = """
listen = ["tmq://127.0.0.1:0"]

[admin]
listen = ["127.0.0.1:0"]

[access.roles.watcher]
rights = ["see-server", "see-channel"]
channels = ["*"]

[[access.tokens]]
name = "root"
token = "all of it"
roles = ["admin"]

[[access.tokens]]
name = "watcher"
token = "only a look"
roles = ["watcher"]
"""


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    """A server, and a client of its API that has not logged in."""
    async with running(ServerConfig(**parse_config(CONFIG))) as server:
        (address,) = server.door_addresses("admin")
        url = f"http://{address.rpartition('/')[2]}"
        async with httpx.AsyncClient(base_url=url) as client:
            yield server, client


async def test_who_logs_in_sees_the_server_its_queues_and_its_session() -> None:
    async with serving() as (server, web):
        refused = await web.get("/api/v1/server")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (
            401,
            'Bearer realm="tmqp"',
        )
        token = {"Authorization": "Bearer all of it"}
        async with connect(str(server.addresses[0]), token="all of it") as client:
            await client.create_queue("orders", 1, status="pull")
            await client.push("orders", 1, "hello")
            listed = await web.get("/api/v1/queues", headers=token)
            assert [each["waiting"] for each in listed.json()["items"]] == [1]
            shown = (await web.get("/api/v1/server", headers=token)).json()
            assert (shown["queues"], shown["messages"]["waiting"], shown["ready"]) == (1, 1, True)
        logged_in = await web.post("/api/v1/session", json={"token": "only a look"})
        assert logged_in.status_code == 201
        csrf = {"X-Tmqp-Csrf": logged_in.json()["csrf"]}
        session = (await web.get("/api/v1/session")).json()
        assert session["csrf"] == logged_in.json()["csrf"]
        assert (await web.get("/api/v1/server")).status_code == 200
        out = await web.delete("/api/v1/session", headers=csrf)
        assert (out.status_code, len(web.cookies)) == (204, 0)
        assert (await web.get("/api/v1/session")).status_code == 401


# --- JSON over a WebSocket -----------------------------------------------------------------------


async def say(socket: ClientConnection, **said: Any) -> dict[str, Any]:
    """Ask for something, and read what comes next."""
    await socket.send(json.dumps(said))
    found: dict[str, Any] = json.loads(await socket.recv())
    return found


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the client's
async def test_a_web_socket_opens_for_who_logs_in_and_has_the_rights_of_its_log_in() -> None:
    async with serving() as (server, web):
        url = f"{str(web.base_url).replace('http', 'ws')}/api/v1/ws"
        protocol = [Subprotocol("tmqp.json.v1")]

        def opened(**fields: str) -> connect_socket:
            return connect_socket(url, subprotocols=protocol, additional_headers=fields)

        with pytest.raises(websockets.InvalidStatus) as refused:
            await opened()
        assert refused.value.response.status_code == 401
        with pytest.raises(websockets.InvalidStatus) as refused:
            await opened(Authorization="Bearer all of it", Origin="http://evil.example")
        assert refused.value.response.status_code == 403
        async with opened(Authorization="Bearer only a look") as watcher:
            for op in ("push", "join"):
                told = await say(watcher, op=op, channel="orders", ref=1)
                assert (told["op"], told["code"]) == ("problem", 401)
        async with opened(Authorization="Bearer all of it") as socket:
            assert (await say(socket, op="join", channel="orders", credit=1, ref=1))["ref"] == 1
            async with connect(str(server.addresses[0]), token="all of it") as client:
                await client.push("orders", 1, "hello")
            message = json.loads(await socket.recv())
            assert (message["op"], message["text"]) == ("message", "hello")
        logged_in = await web.post("/api/v1/session", json={"token": "all of it"})
        assert logged_in.status_code == 201
        cookie = "; ".join([f"{key}={value}" for key, value in web.cookies.items()])
        async with opened(Cookie=cookie) as page:
            message = await say(page, op="join", channel="orders", window=1)
            assert (message["text"], message["attempt"]) == ("hello", 2)
            assert (await say(page, op="ack", channel="orders", queue=1, id=message["id"], ref=2))[
                "op"
            ] == "reply"
        server.stop()
