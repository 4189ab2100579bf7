"""A server with a custom delivery handler, and clients that choose it by name for a queue."""

from __future__ import annotations

import os

import anyio

from tmqp.address import Address
from tmqp_client import Client, NegativeAcknowledge, connect
from tmqp_server import (
    ACKNOWLEDGE,
    PUT_BACK_AT_END,
    Decision,
    DeliveryHandler,
    Message,
    QueueFacts,
    ServerConfig,
    running,
)
from tmqp_server import Client as Consumer


class Patient(DeliveryHandler):
    """Redelivers a message a few times if it is refused or not acknowledged in time."""

    def __init__(self, times: int) -> None:
        self.times = times  # a setting; a handler must not keep state between calls

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Consumer, positive: bool, reason: str
    ) -> Decision:
        if positive or message.put_backs >= self.times:
            return ACKNOWLEDGE  # forwards the consumer's acknowledgement to the producer
        return PUT_BACK_AT_END

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Consumer
    ) -> Decision:
        return self.acknowledge_received(queue, message, consumer, False, "timeout")


async def consume(client: Client, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    seen: dict[str, int] = {}
    async with client.consume("orders", 1, acknowledge="manual") as orders:
        task_status.started()
        async for order in orders:
            seen[order.text] = seen.get(order.text, 0) + 1
            good = order.text == "one pizza" and seen[order.text] == 2
            print(f"consumer: {order.text}, {'taken' if good else 'refused'}")
            await (order.ack() if good else order.nack("no oven"))


async def main() -> None:
    config = ServerConfig(listen=[Address("127.0.0.1", 0)])
    async with running(config, handlers={"patient": Patient(times=2)}) as server:
        address = str(server.addresses[0])
        async with connect(address) as kitchen, connect(address) as shop:
            await shop.create_queue("orders", 1, status="push", delivery_handler="patient")
            async with anyio.create_task_group() as tasks:
                await tasks.start(consume, kitchen)
                await shop.push("orders", 1, "one pizza")
                print("producer: taken")
                try:
                    await shop.push("orders", 1, "one tent")
                except NegativeAcknowledge as error:
                    print(f"producer: refused, {error.reason}")
                tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
