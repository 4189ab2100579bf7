"""Connections in the event loop: read and watched, written, closed whatever happens."""

from __future__ import annotations

import logging

import anyio
import pytest

from tests.tmqp_server.io.stand_ins import Pipe, settled, staged
from tests.tmqp_server.shell.stage import marks

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True, params=["read", "watched"])
def _pipes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test once with a connection that is read, and once with one that is watched."""
    monkeypatch.setattr(Pipe, "watched", request.param == "watched")


async def test_what_comes_is_worked_off_in_order() -> None:
    async with staged() as stage:
        producer, _ = await stage.open(1)
        _, consumer = await stage.open(2, "join c")
        for number in range(5):
            producer.give(f"push c m{number}".encode())
        await settled()
        assert consumer.words() == [f"line:m{number}" for number in range(5)]


async def test_what_waits_is_written_when_there_is_room() -> None:
    async with staged() as stage:
        pipe, _ = await stage.open(room=10)
        stage.say(b"a" * 100)
        await settled()  # the writing task waits for room, piece in hand
        assert len(pipe.sent) == 10
        pipe.read(200)
        stage.say(b"b" * 50)  # before that task has its turn
        await settled()
        assert len(pipe.sent) == 150
        assert stage.waits() == 0


async def test_a_large_piece_is_not_copied_again_for_each_part_of_it() -> None:
    size = 3_000_000
    async with staged(marks(most=size)) as stage:
        pipe, _ = await stage.open(room=0)
        stage.say(bytes(size))
        while len(pipe.sent) < size:
            pipe.read(100_000)
            await settled()
        assert pipe.copied == size


async def test_who_does_not_read_is_read_from_again_when_it_does() -> None:
    async with staged(marks(low=10, high=50, most=1_000)) as stage:
        pipe, session = await stage.open(room=0)
        stage.say(b"x" * 501)
        pipe.give(b"list")
        pipe.give(b"list")
        await settled()
        assert session.words().count("Reply") == 1
        pipe.read(1_000)
        await settled()
        assert session.words() == ["Reply"]


async def test_portions_are_worked_off_between_looks_at_the_others() -> None:
    async with staged(portion_bytes=100) as stage:
        greedy, heard = await stage.open(1)
        modest, _ = await stage.open(2)
        greedy.give(b"; ".join([b"list"] * 50))
        modest.give(b"list")
        await settled()
        assert len(modest.sent) == 100
        assert heard.words() == ["Reply"] * 50
        greedy.give(b"list")
        await settled()
        assert heard.words() == ["Reply"]


async def test_a_stalled_connection_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with staged(marks(stall_s=0.05)) as stage:
        pipe, _ = await stage.open(room=5)
        stage.say(b"0123456789")
        while not stage.ended:  # noqa: ASYNC110 - bounded by the stage
            await anyio.sleep(0.01)
        assert pipe.closed == 1
        assert not stage.turn._outs
    assert "client 1: closed: slow reader: no progress for 0.05 seconds" in caplog.text


async def test_the_end_of_the_stream_leaves_time_for_what_waits() -> None:
    async with staged() as stage:
        pipe, _ = await stage.open(room=0)
        stage.say(b"last words")
        pipe.give(b"")
        await settled()
        assert not stage.ended
        pipe.read(10)
        await settled()
        assert stage.ended == [1]
        assert len(pipe.sent) == 10


async def test_a_reset_closes_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with staged() as stage:
        pipe, session = await stage.open()
        pipe.fail(ConnectionResetError("reset by peer"))
        await settled()
        assert session.close_reason == "end"
        assert pipe.closed == 1
    assert "client 1: closed: reset by peer" in caplog.text


async def test_what_came_before_a_failed_send_is_still_worked_off() -> None:
    async with staged() as stage:
        pipe, _ = await stage.open(1, room=3)
        _, consumer = await stage.open(2, "join c")
        stage.say(b"answer")
        await settled()
        pipe.send_failure = BrokenPipeError(32, "broken pipe")
        pipe.read(1)
        pipe.give(b"push c m1")
        await settled()
        assert consumer.words() == ["line:m1"]
        pipe.give(b"")
        await settled()
        assert stage.ended == [1]


async def test_a_fault_ends_its_connection_and_reaches_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with staged() as stage:
        bad_pipe, bad = await stage.open(1)
        good_pipe, good = await stage.open(2)
        bad.fault = "receive"
        bad_pipe.give(b"list")
        good_pipe.give(b"list")
        await settled()
        assert stage.ended == [1]
        assert bad_pipe.closed == 1
        assert good.words() == ["Reply"]
    (record,) = [each for each in caplog.records if each.exc_info]
    assert record.getMessage() == "client 1: the session failed"


async def test_a_fault_of_the_shell_itself_does_not_reach_the_loop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged() as stage:
        pipe, _ = await stage.open(1)
        other_pipe, other = await stage.open(2)

        def fail(count: int = 1) -> bytes:
            raise RuntimeError(f"a bug, {count}")

        monkeypatch.setattr(pipe, "receive_now", fail)
        monkeypatch.setattr(pipe, "receive", fail)
        pipe.give(b"list")
        pipe.give(b"list")
        await settled()
        assert stage.ended == [1]
        assert pipe.closed == 1
        other_pipe.give(b"list")
        await settled()
        assert other.words() == ["Reply"]


async def test_cancelling_from_outside_closes_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with staged() as stage:
        pipe, _ = await stage.open(room=0)
        stage.say(b"x")
        await settled()
    assert pipe.closed == 1
    assert "client 1: closed: the server stopped" in caplog.text
    assert not stage.turn._outs
