"""Every client that has joined a channel gets every message of a push queue."""

from __future__ import annotations

import os

import anyio

from tmqp_client import Multipart, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    lines: list[str] = []

    async with connect(ADDRESS) as newsroom:
        await newsroom.create_queue("news", 1, status="push")

        async def read(reader: str, *, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with connect(ADDRESS) as client, client.consume("news", 1) as messages:
                task_status.started()
                async for message in messages:
                    headline, body = (part.decode() for part in message.parts)
                    lines.append(f"{reader}: {headline} ({len(body)} characters)")
                    break

        async with anyio.create_task_group() as tasks:
            for reader in ("ada", "bob", "eve"):
                await tasks.start(read, reader)
            # Two parts in one message: they arrive together, or not at all.
            await newsroom.push("news", 1, Multipart("Snow in June", "It is cold."))
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
