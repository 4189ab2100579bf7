"""Confirmed pushes and their consumption through fifty cuts: nothing lost, duplicates known."""

# ruff: noqa: SIM117 - nested blocks tell the story

from __future__ import annotations

import random
from collections import Counter

import anyio
import pytest

from tests.tmqp_client.proxy import Proxy, proxied
from tests.tmqp_client.server import running_server
from tests.waiting import until
from tmqp.models import QueueOptions
from tmqp_client import BatchReport, Client, ReconnectPolicy, connect

MESSAGES = 2_000
CUTS = 50
POLICY = ReconnectPolicy(initial_delay_s=0.005, max_delay_s=0.05, max_sends=100)


@pytest.mark.alone
@pytest.mark.timeout(120)
async def test_nothing_is_lost_through_fifty_cuts() -> None:
    with running_server() as (address, _):
        async with proxied(address) as near, proxied(address) as far:
            async with (
                connect(near.address, reconnect=POLICY) as producer,
                connect(far.address, reconnect=POLICY) as consumer,
            ):
                await run(producer, consumer, near, far)


async def run(producer: Client, consumer: Client, near: Proxy, far: Proxy) -> None:
    options = QueueOptions(request_acknowledge=True, acknowledge_timeout_ms=300)
    await producer.create_queue("cut", 1, options, status="round-robin")
    reports: list[BatchReport] = []
    ids: dict[bytes, set[str]] = {}
    deliveries: Counter[bytes] = Counter()
    done = anyio.Event()
    chance = random.Random(50)

    async def produce() -> None:
        for first in range(0, MESSAGES, 40):
            batch = [b"%d" % number for number in range(first, first + 40)]
            reports.append(await producer.push_many("cut", 1, batch, timeout_s=60))
            await anyio.sleep(0.01)

    async def consume() -> None:
        async with consumer.consume("cut", 1) as messages:
            async for message in messages:
                deliveries[message.payload] += 1
                ids.setdefault(message.payload, set()).add(message.message_id)
                if len(ids) == MESSAGES:
                    done.set()

    async def cut() -> None:
        cuts = Counter[Client]()
        for number in range(CUTS):
            proxy, client = ((near, producer), (far, consumer))[number % 2]
            # On a loaded machine a cut would come before the client is connected again.
            await until(lambda: client.statistics().connections > cuts[client])  # noqa: B023
            cuts[client] = client.statistics().connections
            await anyio.sleep(chance.uniform(0.005, 0.03))
            if number % 7 == 0:
                proxy.stall()
                await anyio.sleep(0.02)
                await proxy.cut(half=True)
                await proxy.bury()
                proxy.flow()
            else:
                await proxy.cut(reset=bool(number % 3))

    with anyio.fail_after(100):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            async with anyio.create_task_group() as both:
                both.start_soon(produce)
                both.start_soon(cut)
            await done.wait()
            tasks.cancel_scope.cancel()
    assert sum(report.confirmed for report in reports) == MESSAGES
    assert ids.keys() == {b"%d" % number for number in range(MESSAGES)}, "lost 0, invented 0"
    assert all(len(names) == 1 for names in ids.values()), "a duplicate bears the id of the first"
    lost = producer.statistics().connections + consumer.statistics().connections - 2
    assert lost >= CUTS // 2, "it was cut while it worked"
    resent = sum(report.resent for report in reports)
    repeated = sum(count - 1 for count in deliveries.values())
    print(f"{lost} connections lost, {resent} pushes sent again, {repeated} deliveries repeated")
