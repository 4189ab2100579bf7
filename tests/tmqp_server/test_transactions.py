"""Transactions, with a real server, a real store and the client, on each loop."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from tmqp.address import Address
from tmqp.models import QueueOptions, TransactionInformation
from tmqp_client import Client, connect
from tmqp_server.app import Server, running
from tmqp_server.config import ServerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tmqp_server.auth import Access
    from tmqp_server.storage.port import Store

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
    return await client.push_transaction(transaction, "c", 1, payloads)


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
