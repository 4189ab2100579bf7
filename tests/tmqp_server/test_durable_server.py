"""The whole server with its store on disk: it stops, is started again, and everything is there."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from tmqp.address import Address
from tmqp.constants import QueueStatus
from tmqp.models import QueueOptions
from tmqp_client import Client, OperationError, OperationFailed, connect
from tmqp_server.config import ConfigError, ServerConfig, StorageConfig
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import (
    TO_QUEUE,
    TO_URL,
    BindingOptions,
    ChannelChanges,
    QueueChanges,
)
from tmqp_server.settings.options import DeclaredChannel, DeclaredQueue
from tmqp_server.settings.routers import DeclaredRouter
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import (
    KeepRouter,
    QueueOffsets,
    Store,
    StoreBatch,
    StoreError,
    StoreFullError,
)
from tmqp_server.storage.topology import router_to_bytes
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.running import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

DURABLE = QueueOptions(durable=True)


def config(data: Path | None, **more: Any) -> ServerConfig:
    where = None if data is None else str(data)
    return ServerConfig(listen=(Address("127.0.0.1", 0),), data=where, **more)


@asynccontextmanager
async def serving(
    data: Path | None, store: Store | None = None, **more: Any
) -> AsyncIterator[tuple[Server, Client]]:
    async with (
        running(config(data, **more), store=store) as server,
        connect(str(server.addresses[0]), name="test", type="test") as client,
    ):
        yield server, client


async def take(client: Client, count: int, channel: str = "c", queue_id: int = 1) -> list[bytes]:
    got: list[bytes] = []
    with anyio.fail_after(20):
        async with client.consume(channel, queue_id) as messages:
            async for message in messages:
                got.append(message.payload)
                if len(got) == count:
                    break
    return got


async def test_what_was_confirmed_is_there_after_a_restart(tmp_path: Path) -> None:
    lines = [b"%04d" % each for each in range(500)]
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        await client.push_many("c", 1, lines)
    async with serving(tmp_path) as (server, client):
        (queue,) = server.broker.queues()
        assert queue.live() == 500
        assert await take(client, 200) == lines[:200]
    async with serving(tmp_path) as (_, client):
        assert await take(client, 300) == lines[200:]
    async with serving(tmp_path) as (server, _):
        (queue,) = server.broker.queues()
        assert queue.live() == 0
        assert queue.sequence == 500


async def test_an_expiry_beyond_all_times_stopped_the_storage(tmp_path: Path) -> None:
    timeouts = [10**15, 10**16, 2**63 - 1]
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        for timeout_ms in timeouts:
            headers = [("Message-Timeout", str(timeout_ms))]
            await client.push("c", 1, str(timeout_ms).encode(), headers=headers)
    async with serving(tmp_path) as (_, client):
        assert await take(client, 3) == [str(each).encode() for each in timeouts]


async def test_far_more_than_the_memory_takes(tmp_path: Path) -> None:
    limits = EngineLimits(max_messages_in_memory=50)
    lines = [b"%04d" % each for each in range(1_000)]
    async with serving(tmp_path, broker=limits) as (server, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        await client.push_many("c", 1, lines)
        (queue,) = server.broker.queues()
        assert (queue.count, queue.spilled) == (50, 950)
        assert await take(client, 100) == lines[:100]
    async with serving(tmp_path, broker=limits) as (server, client):
        assert await take(client, 900) == lines[100:]


async def test_without_data_nothing_is_durable() -> None:
    async with serving(None) as (_, client):
        with pytest.raises(OperationFailed) as refused:
            await client.create_queue("c", 1, DURABLE)
        assert refused.value.code == 406


async def test_one_server_a_directory(tmp_path: Path) -> None:
    async with serving(tmp_path):
        with pytest.raises(StoreError, match="in use"):
            async with running(config(tmp_path)):
                pass
    async with serving(tmp_path):
        pass


async def test_a_disk_without_room_refuses_messages_and_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        await client.push_many("c", 1, [b"1", b"2", b"3"])
    # No disk has so much room.
    floor = StorageConfig(floor_bytes=1 << 60)
    async with serving(tmp_path, storage=floor) as (_, client):
        with pytest.raises(OperationError):
            await client.push("c", 1, b"4")
        await client.create_queue("d", 2, status="push")
        await client.push("d", 2, b"not durable")
        assert await take(client, 3) == [b"1", b"2", b"3"]
    async with serving(tmp_path) as (server, client):
        assert [queue.live() for queue in server.broker.queues()] == [0, 0]
        assert [queue.options.durable for queue in server.broker.queues()] == [True, False]
        await client.push("c", 1, b"5")
        assert await take(client, 1) == [b"5"]


class Moody(MemoryStore):
    """A store that says no while it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.mood = ""
        self.refused = 0
        self.patience = threading.Event()

    def write(self, batch: StoreBatch, now_us: int) -> None:
        if self.mood:
            self.refused += 1
            if self.refused >= 4:
                self.patience.set()
            raise StoreFullError(self.mood)
        super().write(batch, now_us)


async def test_a_store_that_fails_is_tried_again_until_it_heals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Moody()
    async with serving(None, store) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        await client.push("c", 1, b"1")
        store.mood = "the disk is full"
        with pytest.raises(OperationError):
            await client.push("c", 1, b"2")
        assert await take(client, 1) == [b"1"]
        with anyio.fail_after(10):
            # Waited for in a thread, as the store itself is.
            await anyio.to_thread.run_sync(
                store.patience.wait
            )  # the settling of the first is owed, and tried again
        store.mood = ""
        with anyio.fail_after(10):
            while True:
                try:
                    await client.push("c", 1, b"3")
                except OperationError:
                    await anyio.sleep(0.01)
                else:
                    break
        assert await take(client, 1) == [b"3"]
    said = [record.getMessage() for record in caplog.records if "storage" in record.name]
    assert len([each for each in said if "cannot save" in each]) == 1
    assert len([each for each in said if "saves again" in each]) == 1


async def test_an_operation_whose_change_cannot_be_kept_is_answered(tmp_path: Path) -> None:
    store = Moody()
    async with serving(None, store) as (_, client):
        store.mood = "the disk is full"
        with pytest.raises(OperationFailed) as refused:
            await client.create_queue("c", 1, DURABLE, status="push")
        assert refused.value.code == 503
        store.mood = ""


async def test_the_last_batch_cannot_be_written(caplog: pytest.LogCaptureFixture) -> None:
    store = Moody()
    async with serving(None, store) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        await client.push("c", 1, b"1")
        store.mood = "the disk is full"
        await take(client, 1)
    assert any("could not be closed cleanly" in record.getMessage() for record in caplog.records)
    assert not store._is_open


async def test_what_is_not_a_store_of_this_server_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "messages.sqlite3").write_bytes(b"no database at all" * 1_000)
    with pytest.raises(StoreError):
        async with running(config(tmp_path)):
            pass


class Hanging(MemoryStore):
    """A store whose disk does not come back."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = False
        self.over = threading.Event()

    def write(self, batch: StoreBatch, now_us: int) -> None:
        if self.hangs:
            self.over.wait(20)
        super().write(batch, now_us)


async def test_a_disk_that_hangs_does_not_keep_the_server(caplog: pytest.LogCaptureFixture) -> None:
    store = Hanging()
    with anyio.fail_after(10):
        async with serving(None, store, shutdown_timeout_s=0.2) as (_, client):
            await client.create_queue("c", 1, DURABLE, status="push")
            store.hangs = True
            await client.push("c", 1, b"1", wait=False)
    store.over.set()
    assert any("was not closed" in record.getMessage() for record in caplog.records)


class Unreadable(MemoryStore):
    """A store whose first look at its offsets fails."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = 0

    def offsets(self, keys: Sequence[int]) -> list[QueueOffsets]:
        if not self.failed:
            self.failed += 1
            raise StoreError("the disk did not answer")
        return super().offsets(keys)


async def test_one_failed_read_does_not_delay_every_later_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each read used to wait a second, for good, on a server that is only read from."""
    store = Unreadable()
    async with serving(None, store) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        with pytest.raises(OperationFailed) as refused:
            await client.offsets("c")
        assert (refused.value.code, store.failed) == (503, 1)
        with anyio.fail_after(15):  # 30 reads, a second each, were 30 s
            for _ in range(30):
                await client.offsets("c")
    said = [record.getMessage() for record in caplog.records if "storage" in record.name]
    assert len([each for each in said if "cannot be read" in each]) == 1


class Untidy(MemoryStore):
    """A store that cannot catch up after a large write."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.asked = 0

    def catch_up(self) -> None:
        self.asked += 1
        raise self.error


@pytest.mark.parametrize("error", [StoreError("no room to tidy"), ZeroDivisionError("a bug")])
async def test_a_store_that_cannot_catch_up_does_not_end_the_server(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store = Untidy(error)
    async with serving(None, store) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        transaction = await client.open_transaction("app", 1)
        transaction = await client.push_transaction(transaction, "c", 1, [b"1"])
        await client.commit_transaction("app", 1, [transaction])
        await client.push("c", 1, b"2")
        assert await take(client, 2) == [b"1", b"2"]
    assert store.asked == 1
    assert any(str(error) in (record.exc_text or record.getMessage()) for record in caplog.records)


class Broken(MemoryStore):
    """A store with a bug."""

    def write(self, batch: StoreBatch, now_us: int) -> None:
        raise ZeroDivisionError("a bug")


async def test_a_store_with_a_bug_saves_nothing_and_says_so() -> None:
    async with serving(None, Broken()) as (_, client):
        with pytest.raises(OperationFailed) as refused:
            await client.create_queue("c", 1, DURABLE, status="push")
        assert refused.value.code == 503


async def test_what_is_declared_is_kept_and_what_was_kept_stays(tmp_path: Path) -> None:
    queue = DeclaredQueue(1, QueueChanges(durable=True, tag="declared"))
    declared = (DeclaredChannel("c", ChannelChanges(), (queue,)),)
    binding = BindingOptions("b", TO_QUEUE, "c", 1, 0, 0, 0)
    routers = (DeclaredRouter("r", 0, enabled=True, bindings=(binding,)),)
    async with serving(tmp_path, channels=declared, routers=routers) as (server, client):
        await client.push("c", 1, b"1")
        assert [each.options.tag for each in server.broker.queues()] == ["declared"]
    async with serving(tmp_path) as (server, client):
        assert [each.options.tag for each in server.broker.queues()] == ["declared"]
        assert [each.name for each in await client.routers()] == ["r"]
        assert [each.name for each in await client.bindings("r")] == ["b"]
    # Declared again with other options: what is there stays as it is.
    other = DeclaredQueue(1, QueueChanges(tag="other"))
    declared = (DeclaredChannel("c", ChannelChanges(), (other,)),)
    async with serving(tmp_path, channels=declared) as (server, client):
        assert [each.options.tag for each in server.broker.queues()] == ["declared"]
        assert await take(client, 1) == [b"1"]


async def test_every_queue_can_be_durable_by_configuration(tmp_path: Path) -> None:
    async with serving(tmp_path, queue=QueueChanges(durable=True)) as (_, client):
        await client.push("c", 1, b"1")
    async with serving(tmp_path) as (_, client):
        assert await take(client, 1) == [b"1"]
    with pytest.raises(ConfigError, match="durable"):
        async with running(config(None, queue=QueueChanges(durable=True))):
            pass


async def test_a_router_that_was_disabled_stays_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, client):
        await client.create_router("r")
        assert server.set_router_enabled("r", False)
    async with serving(tmp_path) as (_, client):
        assert [each.is_enabled for each in await client.routers()] == [False]
        await client.set_router_enabled("r", True)
    async with serving(tmp_path) as (_, client):
        assert [each.is_enabled for each in await client.routers()] == [True]


async def test_a_binding_that_is_not_allowed_any_more_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    allowed = BindingOptions("stays", TO_QUEUE, "c", 1, 0, 0, 0)
    gone = BindingOptions("calls", TO_URL, "http://example.test/", None, 0, 0, 0)
    store = MemoryStore()
    store.recover()
    made = StoreBatch()
    made.changes.append(KeepRouter("r", router_to_bytes(0, [allowed, gone], enabled=True)))
    store.write(made, 0)
    with caplog.at_level("WARNING", "tmqp_server"):
        async with serving(None, store=store.restarted()) as (_, client):
            assert [each.name for each in await client.bindings("r")] == ["stays"]
    (record,) = [each for each in caplog.records if "left out" in each.getMessage()]
    assert "the binding 'calls' of the router 'r' is left out" in record.getMessage()
    assert "example.test" not in record.getMessage()


async def test_keys_are_found_again_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        options = QueueOptions(durable=True, status=QueueStatus.ROUND_ROBIN, group_keys="strict")
        await client.create_queue("c", 1, options)
        for number in range(3):
            await client.push("c", 1, f"k{number}", key="k")
        await client.push("c", 1, "l0", key="l")
    async with serving(tmp_path) as (_, client):
        await client.join("c")
        assert (await client.queue_information("c", 1)).group_keys == "strict"
        with anyio.fail_after(20):
            async with client.consume("c", 1, acknowledge="manual") as messages:
                first, second = await messages.get(), await messages.get()
                assert (first.text, second.text) == ("k0", "l0"), "k1 waits for k0"
                await first.ack()
                assert (await messages.get()).text == "k1"
