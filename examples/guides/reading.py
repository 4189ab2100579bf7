"""Read the retained messages of a queue, independently of its consumer."""

from __future__ import annotations

import os

import anyio

from tmqp.models import QueueOptions
from tmqp_client import Client, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")
#: Messages are written to disk and kept until all cursors have passed them.
KEPT = QueueOptions(durable=True, retain_for_readers=True)


async def consume(client: Client, count: int) -> None:
    async with client.consume("menu", 1) as orders:
        async for order in orders:
            print(f"consumed: {order.text}")
            count -= 1
            if count == 0:
                break


async def audit(client: Client) -> None:
    async for order in client.read_from("menu", 1, "audit", follow=False):
        print(f"audit: {order.text}")


async def main() -> None:
    async with connect(ADDRESS) as client:
        await client.create_queue("menu", 1, KEPT, status="push")
        await client.open_cursor("menu", 1, "audit")  # nothing is missed from here on
        for dish in ("soup", "bread", "cheese"):
            await client.push("menu", 1, dish)
        await consume(client, 3)

        await audit(client)  # consumed messages can still be read
        await client.push("menu", 1, "coffee")
        await audit(client)  # reading resumes at the cursor

        (there,) = await client.offsets("menu")
        part = await client.read_range("menu", 1, there.latest)
        print(f"the latest of {there.count}: {part[0].text}")
        for cursor in await client.cursors("menu", 1):
            behind = there.latest - cursor.sequence
            print(f"{cursor.name} is {behind} behind")
        await client.drop_cursor("menu", 1, "audit")
        await client.remove_queue("menu", 1)


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
