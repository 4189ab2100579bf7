"""A queue that holds one message: the last one pushed, for every client that reads it."""

from __future__ import annotations

import os

import anyio

from tmqp_client import connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    async with connect(ADDRESS) as station, connect(ADDRESS) as visitor:
        await station.create_queue("weather", 1, status="cache")
        await visitor.join("weather")
        print(await visitor.read_cache("weather", 1))
        for temperature in (17, 18, 21):
            await station.push("weather", 1, f"{temperature} degrees")
        print(await visitor.read_cache("weather", 1))
        print(await visitor.read_cache("weather", 1))  # reading does not consume it
        await station.remove_queue("weather", 1)


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
