"""Messages expire, whichever door they came in by."""

from __future__ import annotations

import anyio
import httpx

from tests.tmqp_server.test_doors import HTTP, PROTOCOLS, TOY, ToyClient, serving
from tmqp_client import connect
from tmqp_server import Server


async def push_for(protocol: str, server: Server, queue: int, ttl_ms: int) -> None:
    """Push a message that lives for so long."""
    if protocol == "tmqp":
        async with connect(str(server.addresses[0])) as client:
            await client.push("short", queue, b"x", expires_s=ttl_ms / 1_000)
    elif protocol == "http":
        (url,) = server.door_addresses("http")
        target = f"/api/v1/channels/short/queues/{queue}/messages?expires_ms={ttl_ms}"
        async with httpx.AsyncClient(base_url=url) as web:
            assert (await web.post(target, content=b"x")).status_code == 201
    else:
        (address,) = server.door_addresses("toy")
        async with await ToyClient.dial(address) as toy:
            asked = {"channel": "short", "queue": queue, "id": "m", "ttl_ms": ttl_ms}
            assert (await toy.ask(do="push", **asked))["is"] == "confirm"


async def test_a_message_expires_whichever_door_it_came_in_by() -> None:
    async with serving(HTTP, TOY) as server, connect(str(server.addresses[0])) as admin:
        for queue, protocol in enumerate(PROTOCOLS):
            await admin.create_queue("short", queue, status="pull")
            await push_for(protocol, server, queue, 60_000)
            await push_for(protocol, server, queue, 50)
        await anyio.sleep(0.2)
        await admin.join("short")
        for queue, protocol in enumerate(PROTOCOLS):
            left = [each.payload async for each in admin.pull("short", queue, 5)]
            assert left == [b"x" if protocol != "toy" else b""], protocol
