"""The API of a running server, asked over a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

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
