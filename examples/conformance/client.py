"""A program on ``tmqp_client`` that does the tasks of ``tmqp-conformance client``.

tmqp-conformance client --exec 'python examples/conformance/client.py {url} {task}'
"""

from __future__ import annotations

import contextlib
import sys

import anyio

from tmqp_client import Client, ClientError, connect

CHANNEL, QUEUE = "conformance", 1


async def consume(client: Client) -> None:
    """Acknowledge what is delivered."""
    async with client, client.consume(CHANNEL) as messages:
        async for message in messages:
            async with message:  # acknowledged when the block succeeds
                pass


async def pull(client: Client) -> None:
    """Pull two messages."""
    async with client:
        with contextlib.suppress(ClientError):  # a refusal is an answer, too
            await client.join(CHANNEL)
            async for message in client.pull(CHANNEL, QUEUE, count=2):
                async with message:
                    pass
        await gone(client)


async def push(client: Client) -> None:
    """Push a message and wait for its acknowledgement."""
    async with client:
        with contextlib.suppress(ClientError):
            await client.push(CHANNEL, QUEUE, b"hello")
        await gone(client)


async def join(client: Client) -> None:
    """Join the channel."""
    async with client:
        with contextlib.suppress(ClientError):
            await client.join(CHANNEL)
        await gone(client)


async def echo(client: Client) -> None:
    """Answer requests with what they ask."""
    async with client, client.direct_messages() as messages:
        async for message in messages:
            if message.requires_response:
                await message.respond(0, message.payload)


async def stay(client: Client) -> None:
    """Connect and do nothing more."""
    async with client:
        await gone(client)


async def gone(client: Client) -> None:
    """Wait until the server closes."""
    while client.connected:  # noqa: ASYNC110 - an example stays simple
        await anyio.sleep(0.02)


TASKS = {"stay": stay, "join": join, "push": push, "consume": consume, "pull": pull, "echo": echo}


async def main(url: str, task: str) -> None:
    """Connect and do a task of the suite."""
    with contextlib.suppress(ClientError):  # the suite ends connections in every way
        await TASKS[task](connect(url, name="tmqp", reconnect=None))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "stay")
