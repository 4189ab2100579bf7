"""A queue with limits: rejected, expired and displaced messages become dead letters."""

from __future__ import annotations

import os

import anyio

from tmqp.models import QueueOptions
from tmqp_client import DeadLetter, OperationFailed, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def main() -> None:
    async with connect(ADDRESS) as client:
        await client.create_queue("strict", 1, options=QueueOptions(message_limit=1))
        await client.push("strict", 1, "one")
        try:
            await client.push("strict", 1, "another one")
        except OperationFailed as error:
            print("refused:", error.code)
        await client.clear_queue("strict", 1)

        await client.create_queue("lost", 1, status="pull")
        await client.create_queue(
            "workshop",
            1,
            status="round-robin",
            options=QueueOptions(
                message_limit=2,
                when_full="dead-letter",
                expired_to_dead_letter=True,
                put_back_limit=1,
                dead_letter_queue="lost;1",
            ),
        )
        await client.push("workshop", 1, "clock", headers={"traceparent": TRACE})
        await client.push("workshop", 1, "bicycle")
        await client.push("workshop", 1, "radio")  # the clock has waited longest and is moved
        async with client.consume("workshop", 1, acknowledge="manual", window=1) as messages:
            for _ in range(2):
                bicycle = await messages.get()
                await bicycle.release(to="front")
            radio = await messages.get()
            print(f"{radio.text} repaired")
            await radio.ack()
        await client.push("workshop", 1, "umbrella", expires_s=0.1)

        letters = 0
        await client.join("lost")
        while letters < 3:
            async for message in client.pull("lost", 1, count=3):
                letter = DeadLetter.of(message)
                assert letter is not None
                print(f"{message.text}: {letter.reason}, sent {letter.attempts} times", end="")
                print(f" by {letter.channel}/{letter.queue_id}")
                if trace := message.header("traceparent"):
                    print(f"  its trace: {trace}")
                await message.ack()
                letters += 1
            await anyio.sleep(0.05)


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
