"""Consumers of one queue choose messages by their headers; messages of one key keep their order."""

from __future__ import annotations

import os

import anyio

from tmqp.models import QueueOptions
from tmqp_client import connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    async with (
        connect(ADDRESS) as office,
        connect(ADDRESS) as paris,
        connect(ADDRESS) as oslo,
    ):
        await office.create_queue("post", 1, status="round-robin")
        async with (
            paris.consume("post", 1, filter="country=fr") as french,
            oslo.consume("post", 1, filter="country=no; size=s*") as norwegian,
        ):
            for text, country, size in (
                ("a book", "fr", "small"),
                ("a skirt", "no", "small"),
                ("a sofa", "no", "large"),
            ):
                headers = {"country": country, "size": size}
                await office.push("post", 1, text, headers=headers)
            print("Paris:", (await french.get()).text)
            print("Oslo:", (await norwegian.get()).text)
        async for each in office.peek("post", 1, states=["waiting"]):
            print(f"{each.text} waits for a consumer that accepts it")
        await office.clear_queue("post", 1)

        # Of messages with the same key, one is unanswered at a time, at any consumer.
        await office.create_queue(
            "accounts", 1, status="round-robin", options=QueueOptions(group_keys="strict")
        )
        async with paris.consume("accounts", 1, acknowledge="manual") as bookings:
            for text, key in (("open 7", "7"), ("close 7", "7"), ("open 8", "8")):
                await office.push("accounts", 1, text, key=key)
            first, second = await bookings.get(), await bookings.get()
            print(f"{first.text}, {second.text}")
            await first.ack()
            third = await bookings.get()
            print(third.text)
            await second.ack()
            await third.ack()


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
