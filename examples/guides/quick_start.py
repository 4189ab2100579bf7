"""Push one message and consume it."""

from __future__ import annotations

import os

import anyio

from tmqp_client import connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    async with connect(ADDRESS, name="quick-start") as client:
        await client.create_queue("orders", 1, status="push")
        await client.push("orders", 1, "one pizza")  # returns when the server has acknowledged
        async with client.consume("orders", 1) as messages:
            async for message in messages:  # asking for the next message acknowledges this one
                print(message.text)
                break  # leaving the block normally acknowledges it, too


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
