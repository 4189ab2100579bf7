"""A sink of a group whose leader ends between a task and the commit; without Spark."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from anyio.to_thread import run_sync

from tests.tmqp_server.wiring.test_replicating import ASYNCIO, DURABLE, Group, group, leads
from tests.waiting import until
from tmqp_client import connect
from tmqp_spark.committing import TaskKey, commit
from tmqp_spark.errors import BrokerRefused
from tmqp_spark.options import ConnectionOptions, SinkOptions
from tmqp_spark.pushing import Pusher
from tmqp_spark.writing import write_once

__all__ = ["group"]

pytestmark = pytest.mark.cold


async def _staged(pusher: Pusher, epoch: int, row: str) -> int:
    """What a task does; the number of its transaction."""
    rows = iter([pa.record_batch([pa.array([row])], names=["value"])])
    options = SinkOptions(channel="c", queue=1)
    work = partial(write_once, pusher, options, ["value"], TaskKey("app", epoch, 0, 0), rows)
    number, _ = await run_sync(work)
    return number


async def _committed(pusher: Pusher, epoch: int, number: int) -> int:
    """What the driver does; how many messages that has pushed."""
    return await run_sync(commit, pusher, "app", epoch, [(number, 1)])


@ASYNCIO
async def test_the_next_leader_knows_what_is_committed_and_not_what_is_staged(
    group: Group,
) -> None:
    async with group.server("a") as first, group.server("b") as second:
        await until(lambda: leads(first)() or leads(second)())
        leader, other = (first, second) if leads(first)() else (second, first)
        addresses = [str(each.addresses[0]) for each in (first, second)]
        async with connect(addresses) as client:
            await client.create_queue("c", 1, DURABLE, status="pull")
        pusher = Pusher(ConnectionOptions(url=",".join(addresses), retries=3), 4)
        done = await _staged(pusher, 1, "a")
        assert await _committed(pusher, 1, done) == 1
        staged = await _staged(pusher, 2, "b")
        leader.stop()
        await leader.wait_until_over()
        await until(leads(other))
        assert await _committed(pusher, 1, done) == 0
        with pytest.raises(BrokerRefused, match=r"another server of its group leads.*Nothing was"):
            await _committed(pusher, 2, staged)
        # The batch is computed again, as foreachBatch can have it done without an end of the query.
        assert await _committed(pusher, 2, await _staged(pusher, 2, "b")) == 1
        pusher.close()
        async with connect(addresses) as client:
            kept = [each.payload for each in await client.read_range("c", 1)]
    assert kept == [b"a", b"b"]
