"""Lose the connection and continue: the client reconnects automatically."""

from __future__ import annotations

import os

import anyio
import anyio.abc

from tmqp.models import QueueOptions
from tmqp_client import Disconnected, Reconnected, ReconnectPolicy, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


class Wire:
    """A proxy that can cut the connection to the server, to simulate a network failure."""

    def __init__(self) -> None:
        self.ends: list[anyio.abc.SocketStream] = []

    async def join(self, near: anyio.abc.SocketStream) -> None:
        host, _, port = ADDRESS.removeprefix("tmq://").rpartition(":")
        async with near, await anyio.connect_tcp(host, int(port)) as far:
            self.ends = [near, far]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.carry, near, far)
                tasks.start_soon(self.carry, far, near)

    async def carry(self, source: anyio.abc.SocketStream, sink: anyio.abc.SocketStream) -> None:
        try:
            async for data in source:
                await sink.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        await sink.aclose()

    async def cut(self) -> None:
        for end in self.ends:
            await end.aclose()


async def main() -> None:
    wire = Wire()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no Django
    policy = ReconnectPolicy(initial_delay_s=0.05, max_delay_s=2.0, max_outage_s=60.0)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, wire.join)
        async with connect(f"tmq://127.0.0.1:{port}", reconnect=policy) as client:
            changes = client.connection_events()
            options = QueueOptions(request_acknowledge=True, acknowledge_timeout_ms=300)
            await client.create_queue("letters", 1, options, status="push")
            async with client.consume("letters", 1, acknowledge="manual") as messages:
                await client.push("letters", 1, "before the cut")
                letter = await messages.get()
                await wire.cut()
                assert isinstance(await anext(changes), Disconnected)
                # Nothing to do: the client sends it after it has reconnected.
                await client.push("letters", 1, "after the cut")
                assert isinstance(await anext(changes), Reconnected)
                # It is too late to acknowledge this message; the server redelivers it.
                print("stale:", letter.stale, "- acknowledged:", await letter.ack())
                both = [await messages.get(), await messages.get()]
                print(sorted(message.text for message in both))
                for message in both:
                    await message.ack()
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
