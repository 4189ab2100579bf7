"""Pull messages in batches, when your program is ready for them."""

from __future__ import annotations

import os

import anyio

from tmqp_client import connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    async with connect(ADDRESS) as client:
        await client.create_queue("jobs", 1, status="pull")
        await client.push_many("jobs", 1, (f"job {number}" for number in range(7)))
        await client.join("jobs")  # only a joined client may pull
        while True:
            pull = client.pull("jobs", 1, count=3, info=True)
            async for message in pull:
                async with message:  # acknowledged when the block succeeds
                    print(message.text, "- left:", message.header("Messages"))
            print(f"{pull.received} pulled, {pull.reason}")
            if pull.reason == "Empty" or pull.received < 3:
                break


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
