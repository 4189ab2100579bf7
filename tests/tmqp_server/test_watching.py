"""Waiting for what can be read, by time and by cursor: a real server, store and client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.tmqp_server.test_reading import KEPT, consume, lines, serving
from tests.waiting import until
from tmqp.constants import HeaderName
from tmqp.extensions import HEADER_TIMESTAMP, HEADER_WAIT, OP_OFFSETS
from tmqp.models import KnownOffsets, OffsetsInformation, QueueOptions
from tmqp_client import OperationFailed, connect, sync
from tmqp_client._core.requests import Request
from tmqp_server.engine.limits import EngineLimits

if TYPE_CHECKING:
    from pathlib import Path


async def test_an_answer_is_held_until_there_is_something_to_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, KEPT, status="push")
        before = await client.offsets("c")
        seen: list[list[OffsetsInformation]] = []

        async def wait() -> None:
            seen.append(await client.offsets("c", wait_ms=20_000, known=before))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(0.2)
            assert seen == []
            with anyio.fail_after(10):
                await client.push("c", 1, b"x")
                await until(lambda: bool(seen))
        ((found,),) = seen
        assert (found.latest, found.count) == (1, 1)
        (message,) = await client.read_range("c", 1, found.earliest)
        assert message.payload == b"x"
        # What is not known is told at once, and so is a queue that is new.
        with anyio.fail_after(10):
            assert await client.offsets("c", wait_ms=20_000) == [found]
            assert await client.offsets("c", wait_ms=20_000, known=before) == [found]
            await client.create_queue("c", 2, KEPT)
            assert len(await client.offsets("c", wait_ms=20_000, known=[found])) == 2
            assert await client.offsets("c", 1, wait_ms=50, known=[found]) == [found]


async def test_a_wait_ends_by_itself_and_costs_the_connection_nothing(tmp_path: Path) -> None:
    limits = EngineLimits(max_read_wait_ms=1_000)
    async with serving(tmp_path, broker=limits) as (server, client):
        await client.create_queue("c", 1, KEPT)
        known = await client.offsets()
        ended: list[str] = []

        async def wait() -> None:
            await client.offsets(wait_ms=60_000, known=known)
            ended.append("wait")

        started = anyio.current_time()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await until(lambda: bool(server.broker._watching._all))
                await client.queues("c")
                ended.append("others")
        assert ended == ["others", "wait"]
        assert anyio.current_time() - started >= 0.99
        assert not server.broker._watching._all


async def test_removing_and_ending_wake_or_forget_who_waits(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, client):
        await client.create_queue("c", 1, KEPT)
        known = await client.offsets()
        watching = server.broker._watching
        async with anyio.create_task_group() as tasks, connect(str(server.addresses[0])) as other:
            answers: list[list[OffsetsInformation]] = []

            async def wait() -> None:
                answers.append(await other.offsets(wait_ms=20_000, known=known))

            tasks.start_soon(wait)
            with anyio.fail_after(10):
                await until(lambda: bool(watching._held))
                await client.remove_queue("c", 1)
                await until(lambda: bool(answers))
            assert answers == [[]]
        async with anyio.create_task_group() as tasks, connect(str(server.addresses[0])) as other:
            tasks.start_soon(partial(other.offsets, wait_ms=20_000))
            with anyio.fail_after(10):
                await until(lambda: bool(watching._held))
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await until(lambda: not watching._all)


async def test_where_a_cursor_is_and_what_came_when(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, KEPT, status="push")
        await client.open_cursor("c", 1, "r")
        await client.push_many("c", 1, lines(1, 10))
        await consume(client, 10)
        await client.commit_cursor("c", 1, "r", 4)
        await anyio.sleep(0.01)
        (middle,) = await client.read_range("c", 1, 10, 10)
        await anyio.sleep(0.01)
        await client.push_many("c", 1, lines(11, 20))
        (found,) = await client.offsets(cursor="r", timestamp_ms=middle.timestamp_us // 1000 + 2)
        assert (found.committed, found.at) == (4, 11)
        (found,) = await client.offsets(cursor="x", timestamp_ms=0)
        assert (found.committed, found.at) == (-1, found.earliest)
        (found,) = await client.offsets(timestamp_ms=2**62 // 1000)
        assert (found.committed, found.at) == (None, 21)
        (found,) = await client.offsets()
        assert (found.committed, found.at) == (None, None)
    async with serving(tmp_path) as (_, client):
        (found,) = await client.offsets(cursor="r", wait_ms=5_000)
        assert found.committed == 4


async def test_commit_and_ask_are_two_frames_and_one_round_trip(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, KEPT)
        await client.push("c", 1, b"x")
        found: list[OffsetsInformation] = []

        async def ask() -> None:
            found.extend(await client.offsets(cursor="r"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.commit_cursor, "c", 1, "r", 1)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(ask)
        assert found[0].committed == 1


@pytest.mark.parametrize(
    ("headers", "payload", "code"),
    [
        ([(HEADER_TIMESTAMP, "soon")], b"", 400),
        ([(HEADER_TIMESTAMP, "9223372036854775")], b"", 0),
        ([(HEADER_TIMESTAMP, "9223372036854776")], b"", 400),
        ([(HEADER_WAIT, "-1")], b"", 400),
        ([(HEADER_WAIT, "5")], b"no json", 400),
        ([(HEADER_WAIT, "5")], b'[{"Queue":1}]', 400),
        ([(HEADER_WAIT, "5")], b'[{"Channel":"c","Queue":1}]', 0),
        ([(HEADER_WAIT, "5")], b"[" + b'{"Channel":"c","Queue":1},' * 20 + b"{}]", 400),
        ([], b"not read at all", 0),
        ([(HeaderName.QUEUE_ID.value, "70000")], b"", 400),
    ],
)
async def test_nonsense_is_refused(
    tmp_path: Path, headers: list[tuple[str, str]], payload: bytes, code: int
) -> None:
    async with serving(tmp_path) as (_, client):
        request = Request(OP_OFFSETS, "list offsets", "*", tuple(headers), payload)
        if not code:
            await client._session.ask(request)
            return
        with pytest.raises(OperationFailed) as refused:
            await client._session.ask(request)
        assert refused.value.code == code


def test_the_blocking_face_waits_too(tmp_path: Path) -> None:
    async def serve(task_status: anyio.abc.TaskStatus[str]) -> None:
        async with serving(tmp_path) as (server, _):
            task_status.started(str(server.addresses[0]))
            await anyio.sleep_forever()

    with (
        anyio.from_thread.start_blocking_portal() as portal,
    ):
        future, url = portal.start_task(serve)
        with sync.connect(url) as client:
            client.create_queue("c", 1, QueueOptions(durable=True))
            (known,) = client.offsets("c", cursor="r", wait_ms=10)
            assert known.committed == -1
            assert client.offsets("c", wait_ms=30, known=[known])[0].latest == known.latest
        future.cancel()


def test_known_offsets_are_read_in_any_case() -> None:
    read = KnownOffsets.from_json(b'{"channel":"c","QUEUE":3,"Latest":9}')
    assert (read.channel, read.queue, read.latest, read.incarnation) == ("c", 3, 9, "")
