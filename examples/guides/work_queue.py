"""Three workers share the messages of one queue, with models, retries and refusals."""

from __future__ import annotations

import os

import anyio
import attrs

from tmqp_client import NegativeAcknowledge, Refuse, RetryPolicy, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


@attrs.define
class Order:
    """An order for a dish."""

    dish: str
    count: int = 1


async def main() -> None:
    served: list[str] = []
    cold = True

    async with connect(ADDRESS, type="worker") as worker, connect(ADDRESS) as shop:
        # Each message goes to one consumer, whose acknowledgement goes to the producer.
        await shop.create_queue("kitchen", 1, status="round-robin", delivery_handler="ack-consumer")

        @worker.handler(
            "kitchen", 1, concurrency=3, retry=RetryPolicy(attempts=3, initial_delay_s=0.01)
        )
        async def cook(order: Order) -> None:  # the annotation says how to decode JSON
            nonlocal cold
            if order.dish == "pizza" and cold:
                cold = False
                raise RuntimeError("the oven is cold")  # the client calls it again
            if order.dish == "soup":
                raise Refuse("no spoons")  # the client does not call it again
            served.append(f"{order.count} {order.dish}")

        async with anyio.create_task_group() as tasks:
            await tasks.start(worker.run)
            for order in (Order("pizza"), Order("salad", 2), Order("soup")):
                try:
                    await shop.push("kitchen", 1, shop.encode(order))
                except NegativeAcknowledge as error:
                    print(f"{order.dish}: {error.reason}")
                else:
                    print(f"{order.dish}: done")
            tasks.cancel_scope.cancel()
    print(sorted(served))


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
