"""Readers of what is kept, with a real server, a real store and the client, on each loop."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from tmqp.address import Address
from tmqp.blocks import AS_BLOCKS, StoredMessage
from tmqp.errors import LocalProtocolError
from tmqp.limits import Limits
from tmqp.models import OffsetsInformation, QueueOptions
from tmqp_client import Client, KeptEntry, KeptMessage, OperationFailed, OutOfRange, connect, sync
from tmqp_server.access.auth import Access, Applicant, Identity
from tmqp_server.access.rights import PULL, SEE_CHANNEL
from tmqp_server.config import ServerConfig
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import DamageError, Store, StoreError
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.running import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

KEPT = QueueOptions(durable=True, retain_for_readers=True)


@asynccontextmanager
async def serving(
    data: Path | None, store: Store | None = None, access: Access | None = None, **more: Any
) -> AsyncIterator[tuple[Server, Client]]:
    where = None if data is None else str(data)
    config = ServerConfig(listen=(Address("127.0.0.1", 0),), data=where, **more)
    async with (
        running(config, store=store, access=access) as server,
        connect(str(server.addresses[0]), name="test", type="test") as client,
    ):
        yield server, client


async def consume(client: Client, count: int, channel: str = "c", queue_id: int = 1) -> None:
    left = count
    with anyio.fail_after(20):
        async with client.consume(channel, queue_id) as messages:
            async for _ in messages:
                left -= 1
                if not left:
                    break


async def offsets(client: Client, channel: str = "c") -> OffsetsInformation:
    (found,) = await client.offsets(channel, 1)
    return found


def lines(first: int, last: int) -> list[bytes]:
    return [b"%04d" % each for each in range(first, last + 1)]


def payloads(messages: list[KeptMessage]) -> list[bytes]:
    return [message.payload for message in messages]


async def everything(client: Client, first: int, limit: int | None = None) -> list[KeptMessage]:
    found: list[KeptMessage] = []
    while part := await client.read_range("c", 1, first, limit=limit):
        found += part
        first = part[-1].sequence + 1
    return found


async def test_what_was_consumed_is_read_again_and_let_go_of_by_a_commit(tmp_path: Path) -> None:
    wild = [*lines(1, 499), bytes(range(256)) * 40]
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, KEPT, status="push")
        opened = await client.open_cursor("c", 1, "reader")
        assert (opened.sequence, opened.name, opened.channel, opened.queue) == (0, "reader", "c", 1)
        await client.push_many("c", 1, wild[:-1])
        await client.push("c", 1, wild[-1], headers=[("K", "v")], high_priority=True)
        await consume(client, 500)
        found = await offsets(client)
        assert (found.earliest, found.latest, found.count) == (1, 500, 500)
        assert found.incarnation == opened.incarnation
        assert found.oldest_ms > 1_500_000_000_000
        read = await everything(client, 1, 77)
        assert payloads(read) == wild
        assert [each.sequence for each in read] == list(range(1, 501))
        last = read[-1]
        assert (last.source, last.headers, last.high_priority) == (
            client.client_id,
            [("K", "v")],
            True,
        )
        assert last.message_id
        assert found.oldest_ms * 1_000 <= last.timestamp_us
        assert payloads(await client.read_range("c", 1, 10, 12)) == wild[9:12]
        assert payloads(await client.read_range("c", 1, limit=2)) == wild[:2]
        moved = await client.commit_cursor("c", 1, "reader", 400)
        assert moved.sequence == 400
        assert (await client.commit_cursor("c", 1, "reader", 3)).sequence == 400
    async with serving(tmp_path) as (_, client):
        (cursor,) = await client.cursors("c", 1)
        assert cursor == moved
        # Blocks are let go of as a whole: perhaps not all up to 400, and surely nothing behind.
        found = await offsets(client)
        assert found.earliest <= 401
        assert payloads(await client.read_range("c", 1, 401, max_bytes=100_000)) == wild[400:]
        await client.commit_cursor("c", 1, "reader", 500)
        found = await offsets(client)
        assert (found.earliest, found.latest, found.count, found.bytes) == (501, 500, 0, 0)
        assert await client.read_range("c", 1, 501) == []
        with pytest.raises(OutOfRange) as lost:
            await client.read_range("c", 1, 7)
        assert lost.value.code == 416
        assert lost.value.offsets() == found
        with pytest.raises(OutOfRange):
            await client.read_range("c", 1, 502)
        assert await client.read_range("c", 1) == []


async def test_cursors_begin_where_they_are_told_and_can_be_dropped(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, KEPT, status="push")
        await client.push_many("c", 1, lines(1, 10))
        await client.commit_cursor("c", 1, "first", 4)
        late = await client.open_cursor("c", 1, "late", "latest")
        assert late.sequence == 10
        assert (await client.open_cursor("c", 1, "late", "earliest")).sequence == 10
        assert [each.name for each in await client.cursors("c", 1)] == ["first", "late"]
        with pytest.raises(LocalProtocolError):
            await client.open_cursor("c", 1, "odd", "middle")
        with pytest.raises(OperationFailed) as refused:
            await client.commit_cursor("c", 1, "late", 11)
        assert refused.value.code == 416
        await consume(client, 10)
        await client.push("c", 1, b"more")
        assert (await client.open_cursor("c", 1, "another", "earliest")).sequence <= 4
        await client.drop_cursor("c", 1, "first")
        await client.drop_cursor("c", 1, "another")
        with pytest.raises(OperationFailed) as gone:
            await client.drop_cursor("c", 1, "first")
        assert gone.value.code == 404
        assert payloads(await client.read_range("c", 1, 11)) == [b"more"]
    async with serving(tmp_path) as (_, client):
        assert [each.name for each in await client.cursors("c", 1)] == ["late"]


async def test_a_queue_created_anew_is_another_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, KEPT)
        await client.push("c", 1, b"old")
        old = await client.open_cursor("c", 1, "reader")
        await client.remove_queue("c", 1)
        for attempt in (client.read_range("c", 1, 1), client.cursors("c", 1)):
            with pytest.raises(OperationFailed) as missing:
                await attempt
            assert missing.value.code == 404
        await client.create_queue("c", 1, KEPT)
        await client.push("c", 1, b"new")
        assert await client.cursors("c", 1) == []
        same = old.incarnation
        for wrong in (
            client.read_range("c", 1, 1, incarnation=same),
            client.open_cursor("c", 1, "reader", incarnation=same),
            client.commit_cursor("c", 1, "reader", 1, incarnation=same),
            client.cursors("c", 1, incarnation=same),
            client.drop_cursor("c", 1, "reader", incarnation=same),
        ):
            with pytest.raises(OperationFailed) as refused:
                await wrong
            assert refused.value.code == 409
        incarnation = (await offsets(client)).incarnation
        read = await client.read_range("c", 1, 1, incarnation=incarnation)
        assert payloads(read) == [b"new"]


async def test_offsets_of_many_queues_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        for name in ("aa", "ab", "b"):
            for queue_id in (1, 2):
                await client.create_queue(name, queue_id, QueueOptions(durable=True))
                await client.push_many(name, queue_id, lines(1, queue_id))
        found = await client.offsets()
        assert [(each.channel, each.queue, each.count) for each in found] == [
            (name, queue_id, queue_id) for name in ("aa", "ab", "b") for queue_id in (1, 2)
        ]
        assert len({each.incarnation for each in found}) == 6
        some = await client.offsets("a*", 2)
        assert [(each.channel, each.queue) for each in some] == [("aa", 2), ("ab", 2)]
        assert await client.offsets("nothing") == []


async def test_a_loop_over_a_cursor_goes_on_where_it_was(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, KEPT, status="push")
        await client.push_many("c", 1, lines(1, 30))
        async for message in client.read_from("c", 1, "loop", follow=False, limit=7):
            if message.sequence == 10:
                break
        (cursor,) = await client.cursors("c", 1)
        assert cursor.sequence == 7
        reading = client.read_from("c", 1, "loop", follow=False, limit=7)
        assert payloads([each async for each in reading]) == lines(8, 30)
        (cursor,) = await client.cursors("c", 1)
        assert cursor.sequence == 30
        seen: list[bytes] = []
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.push_many, "c", 1, lines(31, 35))
                async for message in client.read_from("c", 1, "loop", poll_s=0.02):
                    seen.append(message.payload)
                    if len(seen) == 5:
                        break
        assert seen == lines(31, 35)


async def test_reading_from_a_thread(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, client):
        await client.create_queue("c", 1, KEPT)
        await client.push_many("c", 1, lines(1, 9))

        def read() -> list[bytes]:
            with sync.connect(str(server.addresses[0])) as blocking:
                assert [each.count for each in blocking.offsets("c")] == [9]
                found = blocking.read_from("c", 1, "thread", follow=False, limit=4)
                return [message.payload for message in found]

        assert await anyio.to_thread.run_sync(read) == lines(1, 9)


async def test_bounds(tmp_path: Path) -> None:
    limits = EngineLimits(max_read_messages=5, max_cursors_per_queue=2, max_queues_per_read=2)
    async with serving(tmp_path, broker=limits) as (_, client):
        await client.create_queue("c", 1, KEPT)
        await client.push_many("c", 1, lines(1, 20))
        assert payloads(await client.read_range("c", 1, 1)) == lines(1, 5)
        for name in ("a", "b"):
            await client.open_cursor("c", 1, name)
        with pytest.raises(OperationFailed) as refused:
            await client.open_cursor("c", 1, "third")
        assert refused.value.code == 482
        await client.create_queue("c", 2)
        assert len(await client.offsets()) == 2
        await client.create_queue("c", 3)
        with pytest.raises(OperationFailed) as refused:
            await client.offsets()
        assert refused.value.code == 482


async def test_an_answer_is_no_larger_than_was_asked_for(tmp_path: Path) -> None:
    small = Limits(max_payload_bytes=4_096)
    async with serving(tmp_path, connection=small) as (_, client):
        await client.create_queue("c", 1, KEPT)
        await client.push_many("c", 1, [bytes(300)] * 30)
        assert payloads(await everything(client, 1)) == [bytes(300)] * 30
        assert len(await client.read_range("c", 1, max_bytes=1)) == 1


async def test_what_is_known_of_messages_comes_without_them(tmp_path: Path) -> None:
    small = Limits(max_payload_bytes=4_096)
    async with serving(tmp_path, connection=small) as (_, client):
        await client.create_queue("c", 1, KEPT)
        await client.push_many("c", 1, [bytes(size) for size in range(300)])
        await client.push("c", 1, b"urgent", high_priority=True)
        kept = await everything(client, 1)
        found: list[KeptEntry] = []
        while part := await client.read_index("c", 1, len(found) + 1):
            found += part
        assert len(found) == len(kept) == 301
        for entry, message in zip(found, kept, strict=True):
            assert repr(entry.stored.body) == "b''"
            assert (entry.sequence, entry.timestamp_us, entry.payload_bytes, entry.bytes) == (
                message.sequence,
                message.timestamp_us,
                len(message.payload),
                len(message.stored.body),
            )
        assert [each.sequence for each in found if each.high_priority] == [301]
        some = await client.read_index("c", 1, 7, 12, 4)
        assert [each.sequence for each in some] == [7, 8, 9, 10]
        assert len(await client.read_index("c", 1, max_bytes=1)) == 1
        with pytest.raises(OutOfRange):
            await client.read_index("c", 1, 303)
        with pytest.raises(OperationFailed) as refused:
            await client.read_index("c", 1, incarnation="another")
        assert refused.value.code == 409


async def test_without_data_there_is_nothing_to_read() -> None:
    async with serving(None) as (_, client):
        await client.create_queue("c", 1)
        for attempt in (
            client.offsets(),
            client.read_range("c", 1),
            client.open_cursor("c", 1, "r"),
            client.commit_cursor("c", 1, "r", 0),
            client.cursors("c", 1),
            client.drop_cursor("c", 1, "r"),
        ):
            with pytest.raises(OperationFailed) as refused:
                await attempt
            assert refused.value.code == 501


class Sick(MemoryStore):
    """A store that cannot be read while it is told so."""

    illness: StoreError | None = None

    def read(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, form: int = AS_BLOCKS
    ) -> list[bytes]:
        if self.illness is not None:
            raise self.illness
        return super().read(key, first, last, limit, max_bytes, form=form)

    def offsets(self, keys: Sequence[int]) -> Any:
        if self.illness is not None:
            raise self.illness
        return super().offsets(keys)


async def test_a_store_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    store = Sick()
    async with serving(None, store) as (_, client):
        await client.create_queue("c", 1, KEPT)
        await client.push("c", 1, b"1")
        for illness, code in ((StoreError("away"), 503), (DamageError("queue 1 is ill"), 500)):
            store.illness = illness
            for attempt in (client.read_range("c", 1), client.offsets()):
                with pytest.raises(OperationFailed) as refused:
                    await attempt
                assert refused.value.code == code
            assert str(illness) in caplog.text
        store.illness = None
        assert payloads(await client.read_range("c", 1)) == [b"1"]


class Deaf(MemoryStore):
    """A store that gives nothing back to the broker while it is told so."""

    deaf = False

    def fetch(
        self, key: int, after: int, last: int, limit: int, max_bytes: int, priority: int
    ) -> list[StoredMessage]:
        if self.deaf:
            raise StoreError("deaf")
        return super().fetch(key, after, last, limit, max_bytes, priority)


async def test_readers_do_not_wait_behind_what_cannot_be_read() -> None:
    store = Deaf()
    async with serving(None, store, broker=EngineLimits(max_messages_in_memory=2)) as (_, client):
        await client.create_queue("c", 1, KEPT, status="push")
        await client.push_many("c", 1, lines(1, 20))
        store.deaf = True
        await consume(client, 2)
        with anyio.fail_after(10):
            code = 0
            while not code:
                try:
                    await client.read_range("c", 1)
                except OperationFailed as error:
                    code = error.code
            assert code == 503
            store.deaf = False
            await consume(client, 18)
        assert await client.read_range("c", 1, 21) == []


class Choosy(Access):
    """Shows some channels, and lets some be read."""

    async def authenticate(self, applicant: Applicant) -> bool:
        return True

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool:
        if right == SEE_CHANNEL:
            return subject in ("open", "shown")
        return right != PULL or subject == "open"


async def test_rights(tmp_path: Path) -> None:
    async with serving(tmp_path, access=Choosy()) as (_, client):
        for name in ("open", "shown", "closed"):
            await client.create_queue(name, 1, KEPT)
        assert [each.channel for each in await client.offsets()] == ["open", "shown"]
        assert await client.read_range("open", 1) == []
        await client.open_cursor("open", 1, "r")
        assert len(await client.cursors("open", 1)) == 1
        assert await client.cursors("shown", 1) == []
        for attempt in (
            client.read_range("shown", 1),
            client.open_cursor("shown", 1, "r"),
            client.commit_cursor("shown", 1, "r", 0),
            client.drop_cursor("shown", 1, "r"),
            client.cursors("closed", 1),
        ):
            with pytest.raises(OperationFailed) as refused:
                await attempt
            assert refused.value.code == 401
