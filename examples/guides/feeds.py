"""A topic: each group of consumers has its own queue, which the topic's queue feeds."""

from __future__ import annotations

import os

import anyio

from tmqp_client import Client, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def work_off(client: Client, group: str, count: int) -> list[str]:
    """Consume messages of a group; several consumers would share the messages of its queue."""
    done: list[str] = []
    async with client.consume(group, 1) as messages:
        async for message in messages:
            done.append(message.text)
            if len(done) == count:
                break
    return done


async def main() -> None:
    async with connect(ADDRESS) as client:
        await client.create_queue("shop", 1, status="push")
        for group in ("billing", "letters"):
            await client.create_queue(group, 1, status="round-robin")
        await client.add_feed("shop", 1, "billing", 1)
        await client.add_feed("shop", 1, "letters", 1, filter="kind=letter")

        # There are no consumers yet: the messages wait for each group in its queue.
        await client.push("shop", 1, "a book", headers={"kind": "letter"})
        await client.push("shop", 1, "a song", headers={"kind": "download"})
        await client.push("shop", 1, "a lamp", headers={"kind": "letter"})

        print("billing:", ", ".join(await work_off(client, "billing", 3)))
        print("letters:", ", ".join(await work_off(client, "letters", 2)))
        for feed in await client.feeds("shop"):
            print(f"{feed.target}: {feed.copied} copied, {feed.passed} not wanted")

        # This removes the topic and its feeds; the queues of the groups stay.
        await client.remove_channel("shop")


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
