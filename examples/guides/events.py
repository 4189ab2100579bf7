"""Receive the events of the server as they happen."""

from __future__ import annotations

import os

import anyio

from tmqp.models import ChannelEvent, SubscriptionEvent
from tmqp_client import connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    async with connect(ADDRESS) as watcher, connect(ADDRESS, client_id="guest") as guest:
        async with watcher.events("ChannelCreated") as created:
            await guest.create_channel("party")
            event = await anext(created)
            assert isinstance(event, ChannelEvent)
            print(f"channel {event.name} was created")
        async with watcher.events("ClientJoined", "party") as joined:
            await guest.join("party")
            arrival = await anext(joined)
            assert isinstance(arrival, SubscriptionEvent)
            print(f"{arrival.client_id} joined {arrival.channel}")
        await guest.remove_channel("party")  # so that the program can run again


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
