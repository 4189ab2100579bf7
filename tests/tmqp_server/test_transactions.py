"""Transactions, with a real server, a real store and the client, on each loop."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from tmqp.address import Address
from tmqp.errors import LocalProtocolError
from tmqp.models import QueueOptions, TransactionInformation
from tmqp_client import Client, OperationFailed, connect, sync
from tmqp_server.access.auth import Access, Applicant, Identity
from tmqp_server.access.rights import PUSH, TRANSACT
from tmqp_server.config import ServerConfig
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import Store, StoreError
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.running import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

DURABLE = QueueOptions(durable=True, retain_for_readers=True)


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


def lines(first: int, last: int) -> list[bytes]:
    return [b"%04d" % each for each in range(first, last + 1)]


async def consume(client: Client, count: int, channel: str = "c", queue_id: int = 1) -> list[bytes]:
    found: list[bytes] = []
    with anyio.fail_after(20):
        async with client.consume(channel, queue_id) as messages:
            async for message in messages:
                found.append(message.payload)
                if len(found) >= count:
                    break
    return found


async def waiting(client: Client, channel: str = "c", queue_id: int = 1) -> int:
    return (await client.queue_information(channel, queue_id)).messages


async def staged(
    client: Client, epoch: int, payloads: list[bytes], **more: Any
) -> TransactionInformation:
    transaction = await client.open_transaction("app", epoch, **more)
    assert transaction.state == "open"
    return await client.push_transaction(transaction, "c", 1, payloads, block_bytes=100_000)


async def test_what_is_staged_is_seen_by_nobody_until_it_is_committed(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        first = await staged(client, 1, lines(1, 500), part=0)
        second = await staged(client, 1, lines(501, 600), part=1)
        assert (first.count, second.count) == (500, 100)
        assert await waiting(client) == 0
        assert await client.read_range("c", 1) == []
        done = await client.commit_transaction("app", 1, [first, second])
        assert (done.state, done.count, done.bytes) == (
            "committed",
            600,
            first.bytes + second.bytes,
        )
        kept = await client.read_range("c", 1)
        assert [each.payload for each in kept] == lines(1, 600)
        assert [each.sequence for each in kept] == list(range(1, 601))
        assert await consume(client, 600) == lines(1, 600)


async def test_an_epoch_is_committed_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        transaction = await staged(client, 7, lines(1, 10))
        assert (await client.commit_transaction("app", 7, [transaction])).count == 10
        again = await client.commit_transaction("app", 7, [transaction])
        assert (again.state, again.count) == ("committed", 0)
        assert (await client.open_transaction("app", 7)).state == "committed"
        assert (await client.open_transaction("app", 3)).state == "committed"
        assert (await client.open_transaction("app", 8)).state == "open"
        assert await waiting(client) == 10
    async with serving(tmp_path) as (_, client):
        assert (await client.commit_transaction("app", 7, [transaction])).count == 0
        (mark,) = await client.list_transactions()
        assert (mark.application, mark.epoch, mark.state) == ("app", 7, "committed")
        assert await consume(client, 10) == lines(1, 10)


async def test_what_is_given_up_is_gone(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        one = await staged(client, 1, lines(1, 10))
        await staged(client, 2, lines(1, 10))
        await client.abort_transaction("app", transaction=one)
        await client.abort_transaction("app", 2)
        assert await client.list_transactions() == []
        empty = await client.commit_transaction("app", 1)  # nothing but the epoch
        assert (empty.state, empty.count) == ("committed", 0)
        assert await waiting(client) == 0


async def test_a_large_push_goes_in_blocks_and_comes_back_in_order(tmp_path: Path) -> None:
    many = [b"%06d" % each + bytes(200) for each in range(9_000)]
    async with serving(tmp_path) as (server, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        async with connect(str(server.addresses[0])) as other:
            transaction = await other.open_transaction("app", 1)
            transaction = await other.push_transaction(transaction, "c", 1, iter(many))
            await other.push_transaction(
                transaction, "c", 1, [b"urgent"], high_priority=True, block_bytes=1
            )
        # The one who pushed has gone, and somebody else commits.
        done = await client.commit_transaction("app", 1, [transaction.id])
        assert done.count == 9_001
        assert await consume(client, 9_001) == [b"urgent", *many]


async def committed_at_last(
    client: Client, transaction: TransactionInformation
) -> TransactionInformation:
    """Commit as soon as the storage is tried again."""
    while True:
        try:
            return await client.commit_transaction("app", 1, [transaction])
        except OperationFailed as error:
            if error.code != 503:
                raise
            await anyio.sleep(0.02)


async def test_a_failed_write_is_void_and_the_commit_is_tried_again() -> None:
    store = MemoryStore()
    async with serving(None, store) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        transaction = await staged(client, 1, lines(1, 10))
        store.failures.append(StoreError("no luck"))
        with pytest.raises(OperationFailed) as refused:
            await client.commit_transaction("app", 1, [transaction])
        assert refused.value.code == 503
        assert store.offsets([1])[0].count == 0
        assert [each.state for each in await client.list_transactions()] == ["open"]
        with anyio.fail_after(20):
            done = await committed_at_last(client, transaction)
        assert done.count == 10
        assert await consume(client, 10) == lines(1, 10)


async def test_a_refused_push_is_raised_and_breaks_the_transaction(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        await client.create_queue("c", 2, QueueOptions(durable=False), status="push")
        transaction = await staged(client, 1, lines(1, 2))
        with pytest.raises(OperationFailed) as refused:
            await client.push_transaction(transaction, "c", 2, lines(1, 2))
        assert refused.value.code == 406
        with pytest.raises(OperationFailed) as broken:
            await client.commit_transaction("app", 1, [transaction])
        assert broken.value.code == 409
        with pytest.raises(LocalProtocolError, match="either an epoch or a transaction"):
            await client.abort_transaction("app")
        with pytest.raises(LocalProtocolError, match="Epoch is a number"):
            await client.open_transaction("app", -1)
        with pytest.raises(LocalProtocolError, match="name is empty"):
            await client.open_transaction("", 1)
        with pytest.raises(LocalProtocolError, match="valid Unicode"):
            await client.push_transaction(transaction, "c", 1, ["\ud800"])
        await client.abort_transaction("app", transaction=transaction.id)


async def test_an_idle_transaction_is_given_up(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        transaction = await client.open_transaction("app", 1, idle_timeout_s=0.1)
        with anyio.fail_after(10):
            while await client.list_transactions("app"):  # noqa: ASYNC110 - it is asked
                await anyio.sleep(0.02)
        with pytest.raises(OperationFailed) as gone:
            await client.commit_transaction("app", 1, [transaction])
        assert gone.value.code == 404


async def test_without_a_data_directory_there_are_none() -> None:
    async with serving(None) as (_, client):
        with pytest.raises(OperationFailed) as refused:
            await client.open_transaction("app", 1)
        assert refused.value.code == 501


class Some(Access):
    """Lets everybody in, who may use the application ``mine``, and push into queue 1."""

    async def authenticate(self, applicant: Applicant) -> bool:
        return True

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool:
        if right == TRANSACT:
            return subject == "mine"
        return right != PUSH or queue_id == 1


async def test_rights(tmp_path: Path) -> None:
    async with serving(tmp_path, access=Some()) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        await client.create_queue("c", 2, DURABLE, status="push")
        transaction = await client.open_transaction("mine", 1)
        transaction = await client.push_transaction(transaction, "c", 1, lines(1, 2))
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: client.open_transaction("theirs", 1),
            lambda: client.commit_transaction("theirs", 1),
            lambda: client.abort_transaction("theirs", 1),
            client.list_transactions,
            lambda: client.push_transaction(transaction, "c", 2, lines(1, 1)),
        ]
        for call in calls:
            with pytest.raises(OperationFailed) as refused:
                await call()
            assert refused.value.code == 401
        assert (await client.commit_transaction("mine", 1, [transaction])).count == 2


async def test_the_blocking_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _):

        def work() -> int:
            with sync.connect(str(server.addresses[0])) as client:
                client.create_queue("c", 1, DURABLE, status="push")
                transaction = client.open_transaction("app", 1, part=0)
                transaction = client.push_transaction(transaction, "c", 1, lines(1, 5))
                return client.commit_transaction("app", 1, [transaction]).count

        assert await anyio.to_thread.run_sync(work) == 5


async def test_a_commit_far_larger_than_the_memory_for_transactions(tmp_path: Path) -> None:
    """700 MB in one transaction failed with 482; here 20 MB, with 1 MiB of memory."""
    limits = EngineLimits(max_transactions_memory_bytes=1 << 20)
    payloads = [(b"%06d" % each).ljust(2_000, b".") for each in range(10_000)]
    aside = tmp_path / "staged"
    async with serving(tmp_path, broker=limits) as (_, client):
        await client.create_queue("c", 1, DURABLE, status="push")
        given_up = await staged(client, 1, payloads[:3_000], part=9)
        assert sum(each.stat().st_size for each in aside.iterdir()) > 5_000_000
        await client.abort_transaction("app", transaction=given_up)
        for _ in range(1_000):
            if not [*aside.iterdir()]:
                break
            await anyio.sleep(0.01)
        assert not [*aside.iterdir()], "what is given up is gone"
        first = await staged(client, 1, payloads[:6_000], part=0)
        second = await staged(client, 1, payloads[6_000:], part=1)
        assert (await client.commit_transaction("app", 1, [first, second])).count == 10_000
        left = await staged(client, 2, payloads[:3_000])
        assert left.count == 3_000
        assert [*aside.iterdir()]
    async with serving(tmp_path, broker=limits) as (_, client):
        assert not aside.exists(), "what was not committed has ended with the server"
        assert await client.list_transactions() != []
        found: list[bytes] = []
        while len(found) < 10_000:
            some = await client.read_range("c", 1, len(found) + 1)
            found += [each.payload for each in some]
        assert found == payloads
        assert await consume(client, 500) == payloads[:500]
