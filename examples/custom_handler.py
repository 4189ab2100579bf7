"""A server with a custom delivery handler and a custom router, and two clients that use them.

    python examples/custom_handler.py

The handler ``orders`` refuses messages without content, puts a message back once if a consumer
refuses it, and forwards the consumer's answer to the producer.
The router ``by-country`` sends each message to the channel of its header Country.

The same classes work with the command, ``PYTHONPATH=examples tmqp-server --config orders.toml``:

    [handlers]
    orders = "custom_handler:Orders"

    [custom_routers]
    by-country = "custom_handler:ByCountry"
"""

from __future__ import annotations

import anyio

from tmqp.address import Address
from tmqp.constants import DECIDE_ACK_NEGATIVE, PUT_BACK_NO
from tmqp_client import Client, NegativeAcknowledge, connect
from tmqp_server import (
    ACKNOWLEDGE,
    ALLOW,
    PUT_BACK_AT_END,
    CustomRouter,
    Decision,
    DeliveryHandler,
    Message,
    QueueFacts,
    RoutedMessage,
    ServerConfig,
    Target,
    running,
    to_queue,
)
from tmqp_server import Client as Consumer

#: Not allowed, not saved, not put back; the producer gets a negative acknowledgement.
EMPTY = Decision(False, False, PUT_BACK_NO, DECIDE_ACK_NEGATIVE, "empty")
#: A frame without payload is smaller than this.
SMALLEST_ORDER = 100


class Orders(DeliveryHandler):
    """Decides about orders.  It is pure: no I/O, no clock, no state between calls."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Refuse a message that is too small to be an order."""
        return EMPTY if message.size < SMALLEST_ORDER else ALLOW

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Consumer, positive: bool, reason: str
    ) -> Decision:
        """Forward the answer; put a message back when it is refused for the first time."""
        if positive or message.put_backs:
            return ACKNOWLEDGE
        return PUT_BACK_AT_END


class ByCountry(CustomRouter):
    """Sends each message to the channel of its header Country."""

    def route(self, message: RoutedMessage) -> list[Target]:
        """Return one queue, or none if the message has no such header."""
        country = message.header("Country")
        return [to_queue(f"orders-{country}", 1)] if country else []


async def consume(client: Client, accepted: anyio.Event) -> None:
    """Refuse the first delivery of every order and accept the second, until two are accepted."""
    seen: set[str] = set()
    done = 0
    async with client.consume("orders-dk", 1, acknowledge="manual") as orders:
        async for order in orders:
            print(f"consumer: {order.text.strip()}")
            if order.message_id not in seen:
                seen.add(order.message_id)
                await order.nack("not now")
                continue
            await order.ack()
            done += 1
            if done == 2:
                accepted.set()


async def produce(address: str) -> None:
    """Push an order and an empty one, then publish one with a country and one without."""
    async with connect(address) as client:
        await client.push("orders-dk", 1, b"one lamp".ljust(SMALLEST_ORDER))
        print("producer: accepted")
        try:
            await client.push("orders-dk", 1, b"")
        except NegativeAcknowledge as refusal:
            print(f"producer: refused, {refusal.reason}")
        order = b"two chairs".ljust(SMALLEST_ORDER)
        await client.publish("by-country", order, headers=[("Country", "dk")])
        print("producer: routed")
        try:
            await client.publish("by-country", order)
        except NegativeAcknowledge as refusal:
            print(f"producer: not routed, {refusal.reason}")


async def main() -> None:
    """Run the server and its clients in one program."""
    config = ServerConfig(listen=[Address("127.0.0.1", 0)])
    async with running(
        config, handlers={"orders": Orders()}, routers={"by-country": ByCountry()}
    ) as server:
        address = str(server.addresses[0])
        async with connect(address) as client, anyio.create_task_group() as tasks:
            await client.create_queue("orders-dk", 1, delivery_handler="orders")
            await client.join("orders-dk")
            accepted = anyio.Event()
            tasks.start_soon(consume, client, accepted)
            await produce(address)
            await accepted.wait()
            tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
