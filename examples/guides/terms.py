"""Terms of a consumer: one message at a time, more time, and a later redelivery."""

from __future__ import annotations

import os

import anyio

from tmqp_client import connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    async with connect(ADDRESS) as shop, connect(ADDRESS) as workshop:
        await shop.create_queue("repairs", 1, status="round-robin")

        await shop.push("repairs", 1, "bicycle")
        await shop.push("repairs", 1, "clock")
        reminder = await shop.push("repairs", 1, "reminder", delay_s=3600)
        async for each in shop.peek("repairs", 1):
            print(f"{each.text} is {each.state}")
        print("cancelled:", await shop.cancel_message("repairs", 1, reminder))

        # One unanswered message at a time, 30 seconds for each; if this consumer leaves without an
        # answer, the message goes back to the front at once.
        async with workshop.consume(
            "repairs", 1, acknowledge="manual", window=1, ack_timeout_s=30, returns="front"
        ) as messages:
            bicycle = await messages.get()
            await bicycle.extend(600)  # more time to answer
            await bicycle.release(delay_s=0.2)  # try again later
            clock = await messages.get()
            print(f"{clock.text} repaired")
            await clock.ack()
            bicycle = await messages.get()
            print(f"{bicycle.text} repaired, delivered before: {bicycle.redelivered}")

            # It is not delivered immediately, because the window of the only consumer is full.
            pushed = await shop.push_counted("repairs", 1, "radio")
            print("receivers:", pushed.receivers)
            await bicycle.ack()
            radio = await messages.get()
            print(f"{radio.text} is in the workshop")
        async for each in shop.peek("repairs", 1):
            print(f"{each.text} is {each.state} again")
        await shop.clear_queue("repairs", 1)


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
