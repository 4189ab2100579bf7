"""The driver: turns, timers, faults, and how everything is brought to its end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from tests.tmqp_server.io.stand_ins import Pipe
from tests.tmqp_server.line_door import LineDoor, LineSession
from tmqp_server.config import OutboundLimits
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import HttpAnswered
from tmqp_server.hub.hub import Hub
from tmqp_server.io import driver as driver_module
from tmqp_server.io.driver import Driver
from tmqp_server.io.session import Session

pytestmark = pytest.mark.anyio


class Theatre:
    """A driver with its timers, and as many clients as wanted."""

    def __init__(self, tasks: anyio.abc.TaskGroup, portion_bytes: int) -> None:
        self.door = LineDoor()
        self.hub = Hub(Broker(), portion_bytes)
        self.driver = Driver(self.hub, self.door)
        self.tasks = tasks
        self.ended: list[int] = []
        self._numbers = 0

    async def client(self, *lines: str) -> tuple[Pipe, LineSession]:
        """A client that has said these lines."""
        self._numbers += 1
        number = self._numbers
        pipe = Pipe()
        pipe.peer = f"client {number}"
        session = Session(number, pipe, self.driver, OutboundLimits(flush_timeout_s=0.1))

        async def run() -> None:
            await session.run()
            self.ended.append(number)

        self.tasks.start_soon(run)
        for line in (f"connect n{number}", *lines):
            pipe.give(line.encode())
        await anyio.wait_all_tasks_blocked()
        return pipe, self.door.sessions[number]


@asynccontextmanager
async def theatre(portion_bytes: int = 0) -> AsyncIterator[Theatre]:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            stage = Theatre(tasks, portion_bytes)
            tasks.start_soon(stage.driver.run_timers)
            yield stage
            tasks.cancel_scope.cancel()


async def test_each_touched_session_is_written_to_once_a_turn() -> None:
    async with theatre() as stage:
        producer, _ = await stage.client()
        consumer, heard = await stage.client("join c")
        heard.said.clear()
        before = consumer.calls
        producer.give(b"push c m1; push c m2; push c m3")
        await anyio.wait_all_tasks_blocked()
        assert heard.words() == ["line:m1", "line:m2", "line:m3"]
        assert consumer.calls == before + 1


async def test_a_chunk_that_asks_for_much_lets_others_have_their_turn() -> None:
    async with theatre(portion_bytes=100) as stage:
        greedy, greedy_heard = await stage.client()
        modest, modest_heard = await stage.client()
        greedy_heard.said.clear()
        modest_heard.said.clear()
        order: list[str] = []
        greedy_heard.said = _Log(order, "greedy")
        modest_heard.said = _Log(order, "modest")
        greedy.give(b"; ".join([b"list"] * 50))
        modest.give(b"list")
        await anyio.wait_all_tasks_blocked()
        assert order.count("greedy") == 50
        assert order.index("modest") < 10


class _Log(list[object]):
    """Notes in a common list whose turn it was."""

    def __init__(self, order: list[str], name: str) -> None:
        super().__init__()
        self._order = order
        self._name = name

    def append(self, item: object) -> None:
        super().append(item)
        self._order.append(self._name)


# --- Faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["apply", "deliver", "send", "deadline"])
async def test_a_faulty_door_session_ends_alone_and_is_logged(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with theatre() as stage:
        producer, producer_heard = await stage.client()
        bad_pipe, bad = await stage.client("join c")
        _, good = await stage.client("join c")
        for heard in (producer_heard, bad, good):
            heard.said.clear()
        bad.fault = where
        if where == "deadline":
            bad.due = 0.0
            bad_pipe.give(b"list")  # what it says makes the driver look at its deadline
        elif where == "apply":
            bad_pipe.give(b"list")
        producer.give(b"push c m1; push c m2; list")
        with caplog.at_level(logging.INFO):
            await anyio.wait_all_tasks_blocked()
        assert stage.ended == [2]
        assert bad_pipe.closed == 1
        assert good.words() == ["line:m1", "line:m2"]
        assert producer_heard.words() == ["Reply"]
        producer.give(b"push c m3")
        await anyio.wait_all_tasks_blocked()
        assert good.words() == ["line:m3"]
    messages = [record.getMessage() for record in caplog.records]
    assert "client 2: the session failed" in messages
    assert "client 2: closed: an internal error" in messages
    failed = next(record for record in caplog.records if "failed" in record.getMessage())
    assert failed.exc_info is not None
    assert "a fault of the door" in str(failed.exc_info[1])


async def test_a_delivery_nobody_can_encode_ends_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with theatre() as stage:
        producer, _ = await stage.client()
        _, heard = await stage.client("join c")
        stage.door.fault = True
        producer.give(b"push c m1")
        await anyio.wait_all_tasks_blocked()
        stage.door.fault = False
        producer.give(b"push c m2")
        await anyio.wait_all_tasks_blocked()
        assert heard.words()[-1] == "line:m2"
        assert stage.ended == []
    assert [record.getMessage() for record in caplog.records] == ["a delivery cannot be encoded"]


@pytest.mark.cold  # a compiled class cannot be patched
async def test_a_broker_that_fails_at_a_deadline_is_tried_again_later(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "_FAULT_PAUSE_S", 0.1)
    tried: list[float] = []
    healed = anyio.Event()
    async with theatre() as stage:

        def fail(now: float) -> None:
            tried.append(now)
            if len(tried) == 3:
                healed.set()
                monkeypatch.setattr(stage.hub, "broker_deadline", lambda: None)
                return
            raise ValueError("a fault of the broker")

        monkeypatch.setattr(stage.hub, "on_broker_deadline", fail)
        monkeypatch.setattr(stage.hub, "broker_deadline", lambda: 0.0)
        pipe, heard = await stage.client()
        await healed.wait()
        pipe.give(b"list")
        await anyio.wait_all_tasks_blocked()
        assert heard.words()[-1] == "Reply"
    assert len(tried) == 3
    assert tried[1] - tried[0] >= 0.1
    assert tried[2] - tried[1] >= 0.1
    assert [record.getMessage() for record in caplog.records] == [
        "the broker failed at a deadline",
        "the broker failed at a deadline",
    ]


async def test_a_session_that_never_opened_can_be_closed() -> None:
    async with theatre() as stage:
        session = Session(99, Pipe(), stage.driver, OutboundLimits())
        stage.driver.closed(session, "before it began")
        assert stage.driver.sessions == 0
        stage.driver.block(session)
        stage.driver.unblock(session)
        assert stage.driver.close_reason(session) == ""


# --- Time ----------------------------------------------------------------------------------------


class _Counted(Driver):
    """A driver that counts how often its timer task looks at the time."""

    looks = 0

    def _serve_due(self, now: float) -> None:
        self.looks += 1
        super()._serve_due(now)


async def test_nothing_happens_while_nothing_is_due() -> None:
    async with theatre() as stage:
        stage.tasks.cancel_scope.cancel()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            driver = _Counted(Hub(Broker()), LineDoor())
            tasks.start_soon(driver.run_timers)
            await anyio.sleep(0.05)
            assert driver.looks == 1  # no deadline at all
            session = Session(1, Pipe(), driver, OutboundLimits())
            tasks.start_soon(session.run)
            await anyio.sleep(0.05)
            looks = driver.looks
            assert looks <= 3  # woken by the new session's deadline, which it now waits for
            await anyio.sleep(0.2)
            assert driver.looks == looks
            tasks.cancel_scope.cancel()


async def test_an_earlier_deadline_wakes_the_timer() -> None:
    async with theatre() as stage:
        _, patient = await stage.client()
        patient.due = anyio.current_time() + 1_000
        hasty_pipe, hasty = await stage.client()
        hasty.due = anyio.current_time() + 0.05
        hasty_pipe.give(b"list")
        await hasty.served.wait()
        assert patient.deadlines == []


async def test_a_deadline_that_moves_away_is_not_served_early() -> None:
    async with theatre() as stage:
        began = anyio.current_time()
        pipe, session = await stage.client()
        session.due = began + 0.5
        pipe.give(b"list")
        await anyio.wait_all_tasks_blocked()
        session.due = began + 0.7  # as if bytes came: nobody tells the driver
        await session.served.wait()
        assert session.deadlines[0] >= began + 0.7


async def test_a_deadline_that_stays_in_the_past_blocks_nobody() -> None:
    async with theatre() as stage:
        pipe, session = await stage.client()
        session.stubborn = True
        session.due = 0.0
        pipe.give(b"list")
        other, heard = await _ask(stage)
        other.give(b"list")
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert "Reply" in heard.words()
        session.stubborn = False


async def _ask(stage: Theatre) -> tuple[Pipe, LineSession]:
    """A client whose connecting is not waited for: the timer never rests."""
    pipe = Pipe()
    session = Session(50, pipe, stage.driver, OutboundLimits())
    stage.tasks.start_soon(session.run)
    pipe.give(b"connect other")
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    return pipe, stage.door.sessions[50]


async def test_a_session_without_any_deadline_is_left_alone() -> None:
    async with theatre() as stage:
        stage.door.due = None
        pipe, session = await stage.client()
        pipe.give(b"list")
        await anyio.wait_all_tasks_blocked()
        assert session.deadlines == []
        session.due = anyio.current_time()  # it has one now
        pipe.give(b"list")
        await session.served.wait()


async def test_one_that_is_still_reading_is_not_asked_whether_it_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A ping behind megabytes for a slow line: no answer in time would have ended it."""
    monkeypatch.setattr(driver_module, "_BUSY_RECHECK_S", 0.05)
    async with theatre() as stage:
        pipe, session = await stage.client()
        pipe.room = 0
        session.due = anyio.current_time()
        pipe.give(b"list")
        await anyio.sleep(0.3)
        assert session.deadlines == []
        pipe.read(1_000)
        await session.served.wait()


async def test_the_timers_of_the_dead_do_not_pile_up() -> None:
    """Whatever the deadlines are: a thousand who come and go leave a few entries."""
    async with theatre() as stage:
        for _ in range(5):
            await stage.client()
        for number in range(100, 1_100):
            pipe = Pipe()
            session = Session(number, pipe, stage.driver, OutboundLimits())
            pipe.give(b"")
            await session.run()
        assert len(stage.driver._timers) < 300
        assert sorted(stage.driver._due) == [1, 2, 3, 4, 5]
        _, hasty = await stage.client()
        assert hasty.due is not None
        assert (hasty.due, 6) in stage.driver._timers


# --- The end -------------------------------------------------------------------------------------


async def test_closing_all_waits_for_all() -> None:
    async with theatre() as stage:
        await stage.client()
        await stage.client()
        stage.driver.close_all("enough")
        await stage.driver.wait_for_none()
        await anyio.wait_all_tasks_blocked()
        assert sorted(stage.ended) == [1, 2]
        assert stage.driver.sessions == 0
        await stage.driver.wait_for_none()  # at once


async def test_who_comes_while_the_server_stops_is_closed_too() -> None:
    async with theatre() as stage:
        stage.driver.close_all("enough")
        pipe = Pipe()
        session = Session(1, pipe, stage.driver, OutboundLimits())
        stage.tasks.start_soon(session.run)
        await anyio.wait_all_tasks_blocked()
        assert pipe.closed == 1
        assert stage.door.sessions[1].close_reason == "enough"
        await stage.driver.wait_for_none()


async def test_a_session_that_cannot_be_closed_politely_is_cut() -> None:
    async with theatre() as stage:
        await stage.client()
        _, bad = await stage.client()
        await stage.client()
        bad.fault = "close"
        stage.driver.close_all("enough")
        await stage.driver.wait_for_none()
        await anyio.wait_all_tasks_blocked()
        assert sorted(stage.ended) == [1, 2, 3]


async def test_a_fault_at_the_answer_of_a_call_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to nobody who could be told."""
    async with theatre() as stage:
        pipe, session = await stage.client()

        class Failing:
            """The hub, whose broker has a bug; a compiled one cannot be patched itself."""

            def __getattr__(self, name: str) -> object:
                return getattr(stage.hub, name)

            def answered(self, _answer: HttpAnswered, _now: float) -> None:
                raise RuntimeError("a bug")

        monkeypatch.setattr(stage.driver, "hub", Failing())
        stage.driver.answered(HttpAnswered(1, 200))
        assert not pipe.closed
        assert session.words()[0] == "Accept"
    assert "the answer to an HTTP call failed" in caplog.text
