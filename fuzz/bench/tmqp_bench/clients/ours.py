"""Our client under the load of the comparison."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tmqp_client import Client, connect

__all__ = ["link"]

_CHANNEL = "bench"


class _Ours:
    def __init__(self, client: Client, other: str) -> None:
        self._client = client
        self._other = other

    async def send(self, payload: bytes) -> None:
        await self._client.push(_CHANNEL, 1, payload, wait=False)

    async def confirm(self, payload: bytes) -> None:
        await self._client.push(_CHANNEL, 1, payload)

    async def confirm_many(self, payloads: list[bytes]) -> None:
        await self._client.push_many(_CHANNEL, 1, payloads, in_flight=len(payloads))

    async def ask(self, payload: bytes) -> bytes:
        return (await self._client.request(self._other, payload)).payload


@asynccontextmanager
async def link(
    port: int, kind: str, window: int, taken: Callable[[bytes], None]
) -> AsyncIterator[_Ours]:
    """Our client twice; the consuming side is an ``async for`` loop."""
    address = f"tmq://127.0.0.1:{port}"
    async with connect(address) as client, connect(address) as other:
        ready = asyncio.Event()
        if kind == "request":
            work = _answer(other, ready)
        else:
            await client.create_queue(
                _CHANNEL,
                1,
                status="broadcast" if kind == "stream" else "push",
                wait_for_acknowledge=False,
                delivery_handler="allow-all" if kind == "stream" else "ack-received",
            )
            work = _consume(other, ready, taken)
        consuming = asyncio.create_task(work)
        await ready.wait()
        try:
            yield _Ours(client, other.client_id)
        finally:
            consuming.cancel()
            await asyncio.wait([consuming])


async def _consume(other: Client, ready: asyncio.Event, taken: Callable[[bytes], None]) -> None:
    async with other.consume(_CHANNEL, 1) as messages:
        ready.set()
        async for message in messages:
            taken(message.payload)


async def _answer(other: Client, ready: asyncio.Event) -> None:
    async with other.direct_messages() as messages:
        ready.set()
        async for message in messages:
            await message.respond(0, message.payload)
