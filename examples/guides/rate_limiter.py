"""Three calls a minute for each user, counted by the server: a rate limiter in five lines."""

from __future__ import annotations

import os

import anyio

from tmqp_client import Client, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def may_call(client: Client, user: str) -> bool:
    left = await client.cells.subtract("calls", user, initial=3, ttl_s=60)
    return left is not None


async def main() -> None:
    async with connect(ADDRESS) as client:
        for user in ("ann", "ann", "bob", "ann", "ann", "bob"):
            print(user, await may_call(client, user))
        await client.cells.put("sessions", "ann", "since noon", ttl_s=600)
        async for cell in client.cells.listed("calls"):
            print(cell.key, cell.count)
        for user in ("ann", "bob"):
            await client.cells.drop("calls", user)


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
