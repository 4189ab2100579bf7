"""A custom converter, manual acknowledgement, and a plain function in a thread."""

from __future__ import annotations

import os
import time
from typing import Any, TypeVar

import anyio

from tmqp_client import Message, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")
_T = TypeVar("_T")


class Reading:
    """A measurement of a sensor: a name and a number, ``name=number`` on the wire."""

    def __init__(self, name: str, value: float) -> None:
        self.name = name
        self.value = value


class Readings:
    """Convert readings to payloads and back; it needs no package."""

    def encode(self, value: object) -> bytes:
        assert isinstance(value, Reading)
        return f"{value.name}={value.value}".encode()

    def decode(self, payload: bytes, kind: type[_T]) -> _T:
        name, _, number = payload.decode().partition("=")
        make: Any = kind
        result: _T = make(name, float(number))  # an exception refuses the message
        return result


async def main() -> None:
    done = anyio.Event()
    async with connect(ADDRESS, converter=Readings()) as client:
        await client.create_queue("sensors", 1, status="push")
        await client.create_queue("sensors", 2, status="push")

        @client.handler("sensors", 1)
        def slow(reading: Reading) -> None:  # not async: it runs in a thread and may block
            time.sleep(0.01)
            print(f"{reading.name} is {reading.value}")

        @client.handler("sensors", 2, acknowledge="none")
        async def by_hand(message: Message) -> None:
            await message.ack()
            print(f"acknowledged {message.text}")
            done.set()

        async with anyio.create_task_group() as tasks:
            await tasks.start(client.run)
            await client.push("sensors", 1, client.encode(Reading("oven", 220.5)))
            while client.statistics().acknowledged < 1:
                await anyio.sleep(0.01)
            await client.push("sensors", 2, "something else")
            await done.wait()
            tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
