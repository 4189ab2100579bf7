"""A program on ``tmqp_client`` that does the tasks of ``tmqp-conformance client``.

tmqp-conformance client --exec 'python examples/conformance/client.py {url} {task}'

Without a task it requests its cases from the tool, which is faster, because it is started only
once:

tmqp-conformance client --listen 127.0.0.1:2700 &
python examples/conformance/client.py 127.0.0.1:2700
"""

from __future__ import annotations

import contextlib
import json
import sys
from copy import copy
from functools import partial
from typing import Any

import anyio

from tmqp.address import Address, parse_address
from tmqp_client import (
    Client,
    ClientError,
    ConnectionState,
    OperationFailed,
    ReconnectPolicy,
    connect,
)

CHANNEL, QUEUE = "conformance", 1


async def consume(client: Client) -> None:
    """Acknowledge the delivered messages."""
    async with client, client.consume(CHANNEL) as messages:
        async for message in messages:
            async with message:  # acknowledged when the block succeeds
                pass


async def pull(client: Client) -> None:
    """Pull two messages."""
    async with client:
        with contextlib.suppress(ClientError):  # a refusal is a valid answer, too
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
    """Answer each request with its own payload."""
    async with client, client.direct_messages() as messages:
        async for message in messages:
            if message.requires_response:
                await message.respond(0, message.payload)


async def stay(client: Client) -> None:
    """Connect and do nothing more."""
    async with client:
        await gone(client)


async def gone(client: Client) -> None:
    """Wait until the server closes; a client that connects again stays until it is ended."""
    while client.state is not ConnectionState.CLOSED:  # noqa: ASYNC110 - an example stays simple
        await anyio.sleep(0.01)


TASKS = {"stay": stay, "join": join, "push": push, "consume": consume, "pull": pull, "echo": echo}
#: Reconnect quickly and without limit, because the suite ends connections in every way.
AGAIN = ReconnectPolicy(initial_delay_s=0.02, max_delay_s=0.1, retry_first=True)


async def do(address: Address, task: str, **how: Any) -> None:
    """Connect and do a task of the suite."""
    with contextlib.suppress(ClientError):  # the suite ends connections in every way
        await TASKS[task](connect(address, name="tmqp", **how))


async def drive(address: Address, **how: Any) -> None:
    """Request cases and do the task of each, until there are no more."""
    control = copy(address)
    control.path = "/control"
    while True:
        try:
            async with connect(control, name="driver", reconnect=None, **how) as client:
                answer = await client.request("conformance", b"", content_type=2)
        except OperationFailed:
            return
        await do(address, json.loads(answer.payload)["task"], reconnect=None, **how)


def main(url: str, task: str = "", again: str = "") -> None:
    """Do one task, or every task that the tool has."""
    address = parse_address(url)
    if not task:
        anyio.run(drive, address)
    else:
        anyio.run(partial(do, address, task, reconnect=AGAIN if again else None))


if __name__ == "__main__":
    main(*sys.argv[1:])
