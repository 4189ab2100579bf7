"""The program ``nsq_to_http``: an HTTP request for each message."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from tmqp_nsq.consumer.consumer import Consumer, Delivery
from tmqp_nsq.consuming import check_name, sources
from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.starting import run_program, stop_signals
from tmqp_nsq.to_http.sending import Sender, http_client
from tmqp_nsq.tool_flags import NSQ_TO_HTTP

__all__ = ["consume_to", "main", "run"]

logger = logging.getLogger("tmqp_nsq")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``nsq_to_http``; ends the process with its exit status."""
    run_program(NSQ_TO_HTTP, run, arguments)


async def consume_to(sender: Sender, consumer: Consumer, workers: int) -> None:
    """Send messages with some workers until the consumer stops."""

    async def work(messages: MemoryObjectReceiveStream[Delivery]) -> None:
        async with messages:
            async for delivery in messages:
                await sender.handle(delivery)

    async with consumer.running() as messages, anyio.create_task_group() as group:
        for _ in range(workers):
            group.start_soon(work, messages.clone())


async def run(values: FlagValues) -> None:
    """Run until SIGTERM or SIGINT.

    :raises FlagError: if the flags do not fit together.
    """
    if not values.text("topic"):
        raise FlagError("--topic is required")
    check_name("topic", values.text("topic"))
    client = http_client(values)
    sender = Sender(values, client)
    async with (
        client,
        sources(values) as source,
        anyio.create_task_group() as group,
        stop_signals() as signals,
    ):
        consumer = source.consumer(values.text("topic"))
        workers = min(values.number("n"), source.options.max_in_flight)

        async def consume() -> None:
            await consume_to(sender, consumer, workers)
            group.cancel_scope.cancel()

        group.start_soon(consume)
        async for _ in signals:
            logger.info("stopping")
            group.start_soon(consumer.stop)
