"""Acknowledge a message and push its results in one batch: all of it takes effect, or nothing."""

from __future__ import annotations

import os

import anyio

from tmqp.models import QueueOptions
from tmqp_client import Client, Message, OperationFailed, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def bake(client: Client, flour: Message, *loaves: str) -> None:
    """Acknowledge the flour and push the loaves, in one batch."""
    async with client.batch() as batch:
        for loaf in loaves:
            batch.push("shelf", 1, loaf)
        batch.ack(flour)
        if not loaves:
            raise RuntimeError("nothing to bake")  # an exception in the block: nothing is sent


async def main() -> None:
    async with connect(ADDRESS) as client:
        await client.create_queue("flour", 1, status="pull", options=QueueOptions(durable=True))
        await client.create_queue(
            "shelf", 1, status="pull", options=QueueOptions(durable=True, message_limit=2)
        )
        await client.push("flour", 1, "a sack")
        await client.join("flour")
        async for flour in client.pull("flour", 1, count=1):
            try:
                await bake(client, flour)
            except RuntimeError as error:
                print("not sent:", error)
            try:
                await bake(client, flour, "rye", "wheat", "spelt")
            except OperationFailed as error:
                print("refused:", error.code)  # the shelf has room for two
            print("on the shelf:", [each.text async for each in client.peek("shelf", 1)])

            await bake(client, flour, "rye", "wheat")
            print("on the shelf:", [each.text async for each in client.peek("shelf", 1)])
        print("flour left:", [each.text async for each in client.peek("flour", 1)])
        await client.clear_queue("shelf", 1)


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
