"""A program with ansq, a client for asyncio."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import Any

import ansq
import attr
from ansq.tcp.exceptions import ConnectionClosedError, NSQException
from ansq.tcp.types import ConnectionFeatures, ConnectionOptions, NSQMessage

from tests.interop.nsq.python.lines import decide, say, settings, told

GIVEN = settings()
# By default this library asks for a timeout of a minute.
OPTIONS = ConnectionOptions(features=ConnectionFeatures(msg_timeout=1_000))


class Connected(logging.Handler):
    """Whether the producer is connected: only the library's log says it in time.

    Its own state stays "connected" for a second after the loss.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.event = asyncio.Event()
        self.event.set()
        self.logger = logging.getLogger("producer")
        self.logger.setLevel(logging.DEBUG)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("Lost connection"):
            self.event.clear()
        elif text.startswith("Reconnected"):
            self.event.set()


async def handle(message: NSQMessage) -> None:
    """Do with a message what its body says."""
    body = message.body.decode()
    say(message=body, attempts=message.attempts)
    todo = decide(body, message.attempts)
    if todo == "again":
        await message.req(0)
    elif todo == "slow":
        for _ in range(3):
            await message.touch()
            await asyncio.sleep(0.55)
        await message.fin()
    elif todo == "fine":
        await message.fin()


async def consume(topic: str, channel: str) -> None:
    """Consume for ever."""
    reader = await ansq.create_reader(
        topic=topic,
        channel=channel,
        nsqd_tcp_addresses=[] if GIVEN["lookupd"] else GIVEN["nsqd"],
        lookupd_http_addresses=GIVEN["lookupd"],
        lookupd_poll_interval=1_000,
        connection_options=OPTIONS,
    )
    say(did="consume")
    async for message in reader.messages():
        try:
            await handle(message)
        except (RuntimeWarning, NSQException, ConnectionClosedError) as error:
            print(f"not answered: {error!r}", file=sys.stderr, flush=True)


async def publish(writer: Any, line: dict[str, Any]) -> None:
    """Publish, and say how it went; the library answers errors as values."""
    try:
        if line["do"] == "defer":
            response = await writer.dpub(line["topic"], line["bodies"][0], line["ms"])
        elif len(line["bodies"]) == 1:
            response = await writer.pub(line["topic"], line["bodies"][0])
        else:
            response = await writer.mpub(line["topic"], *line["bodies"])
    except Exception as error:  # noqa: BLE001 - the test is told of each
        say(refused=repr(error))
    else:
        if response.is_ok:
            say(did="publish")
        else:
            say(refused=response.text)


async def main() -> None:
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def listen() -> None:
        for line in told():
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=listen, daemon=True).start()
    connected = Connected()
    options = attr.evolve(OPTIONS, logger=connected.logger)
    writer = None
    tasks = []
    while (line := await lines.get()) is not None:
        if line["do"] == "consume":
            tasks.append(asyncio.create_task(consume(line["topic"], line["channel"])))
            continue
        if line["do"] == "wait":
            await connected.event.wait()
            say(did="wait")
            continue
        if writer is None:
            writer = await ansq.create_writer(
                nsqd_tcp_addresses=GIVEN["nsqd"], connection_options=options
            )
        await publish(writer, line)
    for task in tasks:
        task.cancel()


asyncio.run(main())
