"""Groups and split ranges with a real server, a real store and the client, on each loop."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.tmqp_server.test_reading import KEPT, consume, lines, payloads, serving
from tmqp.constants import HeaderName
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_CURSOR,
    HEADER_START,
    HEADER_TIMESTAMP,
    OP_COMMIT_GROUP,
    OP_DROP_GROUP,
    OP_OPEN_GROUP,
    OP_RESET_GROUP,
    OP_SPLIT_RANGE,
)
from tmqp.models import CursorInformation, GroupOffsets, PartInformation
from tmqp_client import Client, OperationFailed, OutOfRange, connect, sync
from tmqp_client._core.requests import Request
from tmqp_server.access.auth import Access, Applicant, Identity
from tmqp_server.access.rights import PULL
from tmqp_server.engine.limits import EngineLimits

if TYPE_CHECKING:
    from pathlib import Path

QUEUES = (("a", 1), ("a", 2), ("b", 1))


async def fill(client: Client, count: int = 10) -> None:
    for channel, queue_id in QUEUES:
        await client.create_queue(channel, queue_id, KEPT, status="push")
        await client.push_many(channel, queue_id, lines(1, count))


def where(found: list[CursorInformation]) -> list[tuple[str, int, int]]:
    return [(each.channel, each.queue, each.sequence) for each in found]


async def test_a_group_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await fill(client)
        opened = await client.open_group("a", "etl")
        assert where(opened) == [("a", 1, 0), ("a", 2, 0)]
        late = await client.open_group("*", "etl", start="latest")
        assert where(late) == [("a", 1, 0), ("a", 2, 0), ("b", 1, 10)]
        assert await client.open_group("*", "etl") == late
        await consume(client, 10, "a", 1)
        read = await client.read_range("a", 1, opened[0].sequence + 1)
        assert payloads(read) == lines(1, 10), "the group holds what was consumed"
        places = [
            GroupOffsets(channel=each.channel, queue=each.queue, sequence=sequence)
            for each, sequence in zip(late, (4, 6, 2), strict=True)
        ]
        moved = await client.commit_group("etl", places)
        assert where(moved) == [("a", 1, 4), ("a", 2, 6), ("b", 1, 10)], "never back"
        (lag, _, none) = await client.list_groups()
        assert (lag.behind, lag.behind_bytes) == (6, lag.behind_bytes)
        assert lag.behind_bytes
        assert (none.behind, none.behind_bytes) == (0, 0)
    async with serving(tmp_path) as (_, client):
        found = await client.list_groups("a", "etl")
        assert where(found) == [("a", 1, 4), ("a", 2, 6)]
        assert [each.behind for each in found] == [6, 4]
        # What an answer says can be said again.
        assert await client.commit_group("etl", moved) == moved
        back = await client.reset_group("etl", [moved[1]], channel_filter="a")
        assert where(back) == [("a", 2, 6)]
        back = await client.reset_group("etl", channel_filter="a", start="earliest")
        assert [each.queue for each in back] == [1, 2]
        assert all(each.sequence <= 4 for each in back)
        offsets = {each.queue: each for each in await client.offsets("a")}
        for each in back:
            assert each.sequence == offsets[each.queue].earliest - 1
        ends = await client.reset_group("etl", queue_id=1, start="latest")
        assert where(ends) == [("a", 1, 10), ("b", 1, 10)]
        await client.drop_group("etl", "b")
        assert where(await client.list_groups()) == [("a", 1, 10), ("a", 2, back[1].sequence)]
        await client.drop_group("etl")
        assert await client.list_groups() == []
        with pytest.raises(OperationFailed) as gone:
            await client.drop_group("etl")
        assert gone.value.code == 404


async def test_a_group_opens_with_what_came_since_a_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await fill(client)
        ends = [(await client.read_range(*queue, 10, 10))[0].timestamp_us for queue in QUEUES]
        await anyio.sleep(0.005)
        since = max(ends) // 1000 + 2
        await anyio.sleep(0.005)
        await client.push("a", 1, b"new")
        opened = await client.open_group("*", "late", timestamp_ms=since)
        assert where(opened) == [("a", 1, 10), ("a", 2, 10), ("b", 1, 10)]
        moved = await client.reset_group("late", timestamp_ms=0)
        assert where(moved) == [("a", 1, 0), ("a", 2, 0), ("b", 1, 0)]
        (lag, *_) = await client.list_groups(cursor="late", queue_id=1)
        assert lag.behind == 11


async def test_a_queue_that_went_does_not_stop_the_others(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await fill(client)
        opened = await client.open_group("*", "g")
        await client.remove_queue("a", 2)
        await client.create_queue("a", 2, KEPT)
        moved = await client.commit_group("g", opened)
        assert where(moved) == [("a", 1, 0), ("b", 1, 0)]
        with pytest.raises(OperationFailed) as gone:
            await client.commit_group("g", [opened[1]])
        assert gone.value.code == 404
        far = GroupOffsets(channel="a", queue=1, sequence=11)
        for attempt in (client.commit_group("g", [far]), client.reset_group("g", [far])):
            with pytest.raises(OperationFailed) as refused:
                await attempt
            assert refused.value.code == 416


def whole(parts: list[PartInformation]) -> tuple[int, int, int]:
    """The first, the last, and how many; parts must follow one another."""
    for before, part in pairwise(parts):
        assert before.last < part.first
    return parts[0].first, parts[-1].last, sum(part.count for part in parts)


async def test_a_range_is_split_without_reading_it(tmp_path: Path) -> None:
    limits = EngineLimits(max_parts_per_split=8)
    async with serving(tmp_path, broker=limits) as (_, client):
        await client.create_queue("c", 1, KEPT, status="push")
        await client.open_cursor("c", 1, "r")
        assert await client.split_range("c", 1) == []
        await client.push_many("c", 1, [bytes(100)] * 1_000)
        await consume(client, 1_000)
        (part,) = await client.split_range("c", 1)
        assert (part.first, part.last, part.count) == (1, 1_000, 1_000)
        (found,) = await client.offsets("c")
        assert part.bytes == found.bytes
        parts = await client.split_range("c", 1, max_bytes=part.bytes // 3 + part.bytes // 20)
        assert whole(parts) == (1, 1_000, 1_000)
        assert 3 <= len(parts) <= 7, "blocks are not cut where they fit"
        parts = await client.split_range("c", 1, limit=100)
        assert len(parts) == 8, "so many and no more"
        first, last, count = whole(parts)
        assert first == 1
        assert 0 < count <= 800
        following = await client.split_range("c", 1, last + 1, limit=100)
        assert following[0].first == last + 1
        (some,) = await client.split_range("c", 1, 11, 20, incarnation=found.incarnation)
        assert (some.first, some.last, some.count) == (11, 20, 10)
        assert len(await client.read_range("c", 1, some.first, some.last)) == some.count
        assert await client.split_range("c", 1, 1_001) == []
        with pytest.raises(OutOfRange):
            await client.split_range("c", 1, 1_002)
        with pytest.raises(OperationFailed) as other:
            await client.split_range("c", 1, incarnation="other")
        assert other.value.code == 409
        await client.commit_cursor("c", 1, "r", 1_000)
        await client.push("c", 1, b"last")
        with pytest.raises(OutOfRange) as lost:
            await client.split_range("c", 1, 1)
        assert lost.value.offsets().latest == 1_001


@pytest.mark.parametrize(
    ("operation", "headers", "payload", "code"),
    [
        (OP_OPEN_GROUP, [(HEADER_START, "earliest")], b"", 400),
        (OP_OPEN_GROUP, [(HEADER_CURSOR, "g")], b"", 400),
        (OP_OPEN_GROUP, [(HEADER_CURSOR, "g"), (HEADER_START, "middle")], b"", 400),
        (OP_OPEN_GROUP, [(HEADER_CURSOR, "g" * 65_000), (HEADER_START, "latest")], b"", 400),
        (
            OP_OPEN_GROUP,
            [(HEADER_CURSOR, "g"), (HEADER_START, "latest"), (HEADER_TIMESTAMP, "1")],
            b"",
            400,
        ),
        (OP_OPEN_GROUP, [(HEADER_CURSOR, "g"), (HEADER_START, "latest")], b"", 0),
        (OP_COMMIT_GROUP, [], b"[]", 400),
        (OP_COMMIT_GROUP, [(HEADER_CURSOR, "g")], b"", 400),
        (OP_COMMIT_GROUP, [(HEADER_CURSOR, "g")], b"{}", 400),
        (OP_COMMIT_GROUP, [(HEADER_CURSOR, "g")], b'[{"Channel":"a"}]', 400),
        (OP_COMMIT_GROUP, [(HEADER_CURSOR, "g")], b"[]", 404),
        (OP_RESET_GROUP, [(HEADER_CURSOR, "g")], b"", 400),
        (OP_RESET_GROUP, [(HEADER_CURSOR, "g"), (HEADER_START, "latest")], b"[]", 400),
        (OP_DROP_GROUP, [], b"", 400),
        (OP_SPLIT_RANGE, [], b"", 406),
        (OP_SPLIT_RANGE, [(HeaderName.QUEUE_ID.value, "1"), ("Limit", "x")], b"", 400),
        (
            OP_SPLIT_RANGE,
            [(HeaderName.QUEUE_ID.value, "1"), ("From", "9"), ("To", "3")],
            b"",
            400,
        ),
    ],
)
async def test_nonsense_is_refused(
    tmp_path: Path, operation: int, headers: list[tuple[str, str]], payload: bytes, code: int
) -> None:
    async with serving(tmp_path) as (_, client):
        request = Request(operation, "try", "*", tuple(headers), payload)
        if not code:
            await client._session.ask(request)
            return
        with pytest.raises(OperationFailed) as refused:
            await client._session.ask(request)
        assert refused.value.code == code


async def test_the_client_sees_to_its_own_arguments(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        place = GroupOffsets(channel="a", queue=1)
        for attempt in (
            client.open_group("*", "g", start="middle"),
            client.reset_group("g"),
            client.reset_group("g", [place], start="latest"),
            client.reset_group("g", [place], timestamp_ms=1),
            client.open_group("*", "g", timestamp_ms=-1),
        ):
            with pytest.raises(LocalProtocolError):
                await attempt


class Guard(Access):
    """Lets a client read channel ``a`` and see all; ``keep_s`` as told."""

    def __init__(self, keep_s: float) -> None:
        self.keep_s = keep_s
        self.asked: list[tuple[str, int]] = []

    async def authenticate(self, applicant: Applicant) -> bool:
        return True

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool:
        if right == PULL:
            self.asked.append((subject, queue_id))
        return who.name == "admin" or subject in ("", "a")


@pytest.mark.parametrize("keep_s", [0.0, 60.0])
async def test_a_group_is_of_what_the_client_may_read(tmp_path: Path, keep_s: float) -> None:
    guard = Guard(keep_s)
    async with serving(tmp_path, access=guard) as (server, _):
        url = str(server.addresses[0])
        async with connect(url, name="admin") as admin, connect(url, name="reader") as reader:
            await fill(admin)
            everything = await admin.open_group("*", "g")
            assert len(everything) == 3
            own = await reader.open_group("*", "mine")
            assert where(own) == [("a", 1, 0), ("a", 2, 0)], "others are left out"
            assert await reader.open_group("b", "mine") == []
            assert where(await reader.commit_group("mine", own)) == where(own)
            for attempt in (
                reader.commit_group("mine", everything),
                reader.reset_group("mine", everything),
                reader.split_range("b", 1),
            ):
                with pytest.raises(OperationFailed) as refused:
                    await attempt
                assert refused.value.code == 401
            found = await reader.list_groups()
            assert {each.channel for each in found} == {"a"}
            await reader.drop_group("g")
            assert where(await admin.list_groups(cursor="g")) == [("b", 1, 0)]
            assert ("b", 1) in guard.asked


def test_the_blocking_face_has_groups_too(tmp_path: Path) -> None:
    async def serve(task_status: anyio.abc.TaskStatus[str]) -> None:
        async with serving(tmp_path) as (server, client):
            await fill(client)
            task_status.started(str(server.addresses[0]))
            await anyio.sleep_forever()

    with anyio.from_thread.start_blocking_portal() as portal:
        future, url = portal.start_task(serve)
        with sync.connect(url) as client:
            opened = client.open_group("*", "g")
            assert client.commit_group("g", opened) == opened
            assert len(client.list_groups(cursor="g")) == 3
            assert client.reset_group("g", start="latest")[0].sequence == 10
            assert client.split_range("a", 1)[0].count == 10
            client.drop_group("g")
        future.cancel()
