"""The event loop's part of the shell: timers, the store's thread, and how everything ends."""

from __future__ import annotations

import threading

import anyio
import pytest

from tests.tmqp_server.io.stand_ins import Pipe, settled, staged
from tests.tmqp_server.shell.stage import marks
from tmqp_server.engine.commands import CreateQueue
from tmqp_server.engine.options import QueueChanges
from tmqp_server.io.connection import Connection
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import StoreBatch, StoreError

pytestmark = pytest.mark.anyio


async def test_an_earlier_deadline_wakes_the_timer() -> None:
    async with staged() as stage:
        _, patient = await stage.open(1)
        patient.due = anyio.current_time() + 1_000
        pipe, hasty = await stage.open(2)
        hasty.due = anyio.current_time() + 0.05
        pipe.give(b"list")
        await hasty.served.wait()
        assert patient.deadlines == []


async def test_a_deadline_that_stays_in_the_past_blocks_nobody() -> None:
    async with staged() as stage:
        pipe, session = await stage.open(1)
        session.stubborn = True
        session.due = 0.0
        pipe.give(b"list")
        other = Pipe()
        stage.tasks.start_soon(Connection(2, other, "host", stage.shell).run)
        other.give(b"connect other")
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        assert "Accept" in stage.door.sessions[2].words()
        session.stubborn = False


async def test_closing_all_waits_for_all() -> None:
    async with staged() as stage:
        await stage.open(1)
        await stage.open(2)
        stage.shell.close_all("enough")
        await stage.shell.wait_for_none()
        assert not stage.turn._outs
        await stage.shell.wait_for_none()  # at once


async def test_who_comes_while_the_server_stops_is_closed_too() -> None:
    async with staged() as stage:
        stage.shell.close_all("enough")
        pipe = Pipe()
        stage.tasks.start_soon(Connection(1, pipe, "host", stage.shell).run)
        await settled()
        assert pipe.closed == 1
        assert stage.door.sessions[1].close_reason == "enough"


# --- The store -----------------------------------------------------------------------------------


class Watched(MemoryStore):
    """A store in memory that says who does what, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__("watched")
        self.done: list[str] = []
        self.failure: Exception | None = None
        self.threads: set[int] = set()

    def write(self, batch: StoreBatch, now_us: int) -> None:
        self.threads.add(threading.get_ident())
        self.done.append("write")
        if self.failure is not None:
            raise self.failure
        super().write(batch, now_us)

    def catch_up(self) -> None:
        self.done.append("catch up")
        raise ValueError("a bug of the store")

    def close(self, clean: bool) -> None:
        self.done.append(f"close {'cleanly' if clean else 'anyhow'}")
        super().close(clean)


def _queue() -> CreateQueue:
    return CreateQueue(1, "q", "c", 1, QueueChanges(durable=True))


async def test_the_store_works_in_a_thread_of_its_own_and_is_closed_at_the_end() -> None:
    store = Watched()
    async with staged(store=store) as stage:
        await stage.open(1)
        stage.turn.perform([_queue()], stage.shell.now())
        stage.shell.attend()
        while not store.done:  # noqa: ASYNC110 - bounded by the stage
            await anyio.sleep(0.001)
        stage.shell.close_all("enough")
        await stage.shell.wait_for_none()
        await stage.shell.finish_storage()
        await stage.shell.finish_storage()  # at once
    assert store.done[0] == "write"
    assert store.done[-1] == "close cleanly"
    assert threading.get_ident() not in store.threads


@pytest.mark.parametrize("failure", [StoreError("no room"), ValueError("a bug")])
async def test_a_store_that_fails_ends_nobody(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store = Watched()
    store.failure = failure
    async with staged(store=store) as stage:
        pipe, session = await stage.open(1)
        stage.turn.perform([_queue()], stage.shell.now())
        stage.shell.attend()
        while len(store.done) < 3:  # noqa: ASYNC110 - it is tried again; bounded by the stage
            await anyio.sleep(0.01)
        session.said.clear()
        pipe.give(b"list")
        await settled()
        assert session.words() == ["Reply"]
        stage.shell.close_all("enough")
        await stage.shell.wait_for_none()
        await stage.shell.finish_storage()
    assert store.done[-1] == "close anyhow"
    assert "the storage could not be closed cleanly" in caplog.text


async def test_without_a_store_there_is_nothing_to_finish() -> None:
    async with staged(marks()) as stage:
        await stage.shell.finish_storage()
