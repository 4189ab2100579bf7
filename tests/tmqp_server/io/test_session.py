"""Sessions: what is sent and when, what is held back, and how one ends."""

from __future__ import annotations

import anyio
import pytest

from tests.tmqp_server.io.stand_ins import Pipe, Stage, running_session
from tmqp_server.config import OutboundLimits

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True, params=["read", "watched"])
def _pipes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test once with a connection that is read, and once with one that is watched."""
    monkeypatch.setattr(Pipe, "watched", request.param == "watched")


async def test_bytes_never_overtake_a_piece_that_is_being_sent() -> None:
    async with running_session(room=10) as stage:
        stage.session.write(b"a" * 100)
        await anyio.wait_all_tasks_blocked()  # the writing task waits for room, piece in hand
        stage.pipe.read(200)
        stage.session.write(b"b" * 50)  # before that task has its turn
        await anyio.wait_all_tasks_blocked()
        assert bytes(stage.pipe.sent) == b"a" * 100 + b"b" * 50
        assert stage.session.outbound_bytes == 0


async def test_a_write_while_a_session_ends_starts_no_task() -> None:
    """A group that is ending takes no tasks: trio raises, asyncio would lose the task."""
    async with running_session(OutboundLimits(flush_timeout_s=0.01), room=0) as stage:
        stage.pipe.give(b"")
        while not stage.over.is_set():
            stage.session.write(b"x")
            await anyio.lowlevel.checkpoint()
        assert stage.error is None
        assert stage.ears.heard[-1] == "closed"


@pytest.mark.parametrize("where", ["opened", "received", "ended", "closed"])
async def test_whatever_fails_the_transport_is_closed(where: str) -> None:
    stage = Stage(OutboundLimits(), 0)
    stage.ears.faulty = where
    with anyio.fail_after(5):
        stage.pipe.give(b"x")
        stage.pipe.give(b"")
        await stage.run()
    assert stage.pipe.closed == 1
    assert stage.error is not None
    assert stage.ears.heard[-1] == "closed"


async def test_a_reset_is_the_reason_not_the_end_of_stream_it_causes() -> None:
    async with running_session() as stage:
        stage.pipe.fail(ConnectionResetError("reset by peer"))
        await stage.over.wait()
    assert stage.ears.heard == ["opened", "ended", "closed"]
    assert stage.ears.end_reason == "reset by peer"


async def test_what_came_before_a_failed_send_is_still_worked_off() -> None:
    """A producer that closes without reading its acknowledges has pushed all the same."""
    async with running_session() as stage:
        stage.pipe.send_failure = BrokenPipeError("broken pipe")
        stage.pipe.give(b"1")
        stage.pipe.give(b"2")
        stage.session.write(b"answer")
        stage.session.write(b"another")
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard == ["opened", "received 1", "received 2"]
        stage.pipe.give(b"")
        await stage.over.wait()
    assert stage.ears.end_reason == "broken pipe"


async def test_a_failed_send_ends_a_session_whose_reading_does_not() -> None:
    async with running_session(OutboundLimits(flush_timeout_s=0.01)) as stage:
        stage.pipe.send_failure = BrokenPipeError("broken pipe")
        stage.session.write(b"answer")
        await stage.over.wait()
    assert stage.ears.heard == ["opened", "closed"]
    assert stage.ears.end_reason == "broken pipe"


async def test_a_send_that_fails_later_is_the_same() -> None:
    async with running_session(OutboundLimits(flush_timeout_s=0.01), room=3) as stage:
        stage.session.write(b"answer")
        await anyio.wait_all_tasks_blocked()
        stage.pipe.send_failure = BrokenPipeError("broken pipe")
        stage.pipe.read(1)
        stage.pipe.give(b"1")
        await stage.over.wait()
    assert stage.ears.heard == ["opened", "received 1", "closed"]
    assert stage.ears.end_reason == "broken pipe"


async def test_a_slow_reader_is_held_back_then_served_again() -> None:
    limits = OutboundLimits(low_water_bytes=50, high_water_bytes=100)
    async with running_session(limits, room=0) as stage:
        for _ in range(4):
            stage.session.write(b"x" * 30)
        assert stage.ears.heard == ["opened", "block"]
        stage.pipe.read(60)
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard == ["opened", "block"]  # 60 bytes wait: above the low mark
        stage.pipe.read(10)
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard == ["opened", "block", "unblock"]
        stage.pipe.read(1_000)
        await anyio.wait_all_tasks_blocked()
        assert stage.session.outbound_bytes == 0
        assert stage.ears.heard == ["opened", "block", "unblock"]
    assert stage.pipe.sent == b"x" * 120


async def test_what_the_kernel_takes_at_once_needs_no_task() -> None:
    async with running_session() as stage:
        for _ in range(10):
            stage.session.write(b"x")
        assert stage.pipe.calls == 10
        assert stage.pipe.sent == b"x" * 10
        assert stage.ears.heard == ["opened"]


async def test_small_pieces_share_a_send() -> None:
    async with running_session(room=0) as stage:
        for _ in range(1_000):
            stage.session.write(b"0123456789")
        await anyio.wait_all_tasks_blocked()
        before = stage.pipe.calls
        stage.pipe.read(10_000)
        await anyio.wait_all_tasks_blocked()
        assert stage.pipe.sent == b"0123456789" * 1_000
        # The first piece was in hand already; all others went out together.
        assert stage.pipe.calls - before <= 2


async def test_no_progress_for_the_stall_time_cuts() -> None:
    limits = OutboundLimits(stall_timeout_s=0.05)
    async with running_session(limits, room=5) as stage:
        stage.session.write(b"0123456789")
        await stage.over.wait()
    assert stage.ears.end_reason == "slow reader: no progress for 0.05 seconds"
    assert stage.ears.heard == ["opened", "closed"]
    assert stage.pipe.closed == 1


async def test_a_byte_now_and_then_is_progress() -> None:
    limits = OutboundLimits(stall_timeout_s=0.5)
    async with running_session(limits, room=0) as stage:
        stage.session.write(bytes(range(12)))
        for _ in range(12):  # 1.2 s in all, more than twice the stall time
            await anyio.sleep(0.1)
            stage.pipe.read(1)
        await anyio.wait_all_tasks_blocked()
        assert not stage.over.is_set()
        assert stage.pipe.sent == bytes(range(12))


async def test_the_end_of_the_stream_leaves_time_for_what_waits() -> None:
    async with running_session(room=0) as stage:
        stage.session.write(b"last words")
        stage.pipe.give(b"")
        await anyio.wait_all_tasks_blocked()
        assert not stage.over.is_set()
        stage.pipe.read(10)
        await stage.over.wait()
    assert stage.pipe.sent == b"last words"
    assert stage.ears.end_reason == "end-of-stream"


async def test_but_not_for_ever() -> None:
    async with running_session(OutboundLimits(flush_timeout_s=0.02), room=0) as stage:
        stage.session.write(b"last words")
        stage.pipe.give(b"")
        await stage.over.wait()
    assert stage.ears.end_reason == "end-of-stream"
    assert stage.pipe.closed == 1


async def test_a_stopped_session_flushes_and_ends_though_its_peer_is_silent() -> None:
    async with running_session(room=0) as stage:
        stage.session.write(b"Terminate")
        stage.ears.reason = "local"
        stage.session.stop()
        stage.session.stop()
        await anyio.wait_all_tasks_blocked()
        assert not stage.over.is_set()
        stage.pipe.read(9)
        await stage.over.wait()
        stage.session.stop()  # harmless
    assert stage.pipe.sent == b"Terminate"
    assert stage.ears.end_reason == "local"
    assert stage.ears.heard == ["opened", "closed"]


async def test_a_cut_session_sends_nothing_more_and_keeps_the_first_reason() -> None:
    async with running_session(room=3) as stage:
        stage.session.write(b"0123456789")
        stage.session.cut("first")
        stage.session.cut("second")
        stage.pipe.read(100)
        stage.session.write(b"more")
        await stage.over.wait()
        assert stage.session.outbound_bytes == 0
    assert stage.pipe.sent == b"012"
    assert stage.ears.end_reason == "first"


async def test_cancelling_from_outside_closes_it() -> None:
    stage = Stage(OutboundLimits(), 0)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.run)
            await anyio.wait_all_tasks_blocked()
            stage.session.write(b"x")
            tasks.cancel_scope.cancel()
    assert stage.ears.heard == ["opened", "closed"]
    assert stage.ears.end_reason == "the server stopped"
    assert stage.pipe.closed == 1


async def test_a_fault_of_the_driver_is_named_as_such() -> None:
    async with running_session() as stage:
        stage.ears.faulty = "received"
        stage.pipe.give(b"x")
        await stage.over.wait()
    assert stage.ears.end_reason == "an internal error"
    assert isinstance(stage.error, ExceptionGroup)
    assert isinstance(stage.error.exceptions[0], ValueError)


async def test_a_large_piece_is_not_copied_again_for_each_part_of_it() -> None:
    size = 3_000_000
    limits = OutboundLimits(max_outbound_bytes=size)
    async with running_session(limits, room=0) as stage:
        stage.session.write(bytes(range(250)) * (size // 250))
        while len(stage.pipe.sent) < size:
            stage.pipe.read(100_000)
            await anyio.wait_all_tasks_blocked()
        assert stage.pipe.sent == bytes(range(250)) * (size // 250)
        assert stage.pipe.copied == size


async def test_a_reader_that_asks_for_more_than_it_reads_is_cut() -> None:
    limits = OutboundLimits(low_water_bytes=10, high_water_bytes=50, max_outbound_bytes=100)
    async with running_session(limits, room=0) as stage:
        stage.session.write(b"x" * 60)
        assert stage.ears.heard == ["opened", "block"]
        stage.session.write(b"x" * 40)
        await anyio.wait_all_tasks_blocked()
        assert not stage.over.is_set()
        assert stage.session.outbound_bytes == 100
        stage.session.write(b"x")
        await stage.over.wait()
    assert stage.ears.end_reason == "slow reader: over 100 bytes are waiting"
    assert stage.ears.heard == ["opened", "block", "closed"]


async def test_one_message_above_the_limit_is_no_reason_to_cut() -> None:
    """It cut every healthy consumer of a message larger than max_outbound_bytes, for ever."""
    limits = OutboundLimits(low_water_bytes=10, high_water_bytes=50, max_outbound_bytes=100)
    async with running_session(limits, room=0) as stage:
        stage.session.write(b"x" * 1_000)
        assert stage.ears.heard == ["opened", "block"]
        stage.pipe.read(1_000)
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard == ["opened", "block", "unblock"]
        assert not stage.over.is_set()
    assert stage.pipe.sent == b"x" * 1_000


async def test_who_does_not_read_its_answers_is_not_read_from_either() -> None:
    limits = OutboundLimits(low_water_bytes=10, high_water_bytes=50, max_outbound_bytes=200)
    async with running_session(limits, room=0) as stage:
        stage.session.write(b"x" * 101)  # more than half of what may wait
        stage.pipe.give(b"1")
        stage.pipe.give(b"2")
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard == ["opened", "block", "received 1"]
        stage.pipe.read(91)
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard == ["opened", "block", "received 1", "unblock", "received 2"]


async def test_the_next_portion_waits_until_the_last_was_read() -> None:
    limits = OutboundLimits(low_water_bytes=10, high_water_bytes=50)
    async with running_session(limits, room=0) as stage:
        stage.session.write(b"x" * 60)
        stage.ears.portions = 2
        stage.pipe.give(b"1")
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard == ["opened", "block", "received 1"]
        stage.pipe.read(60)
        await anyio.wait_all_tasks_blocked()
        assert stage.ears.heard[2:] == ["received 1", "unblock", "go on", "go on"]


async def test_the_stall_time_holds_while_a_portion_waits() -> None:
    limits = OutboundLimits(low_water_bytes=10, high_water_bytes=50, stall_timeout_s=0.05)
    async with running_session(limits, room=0) as stage:
        stage.session.write(b"x" * 60)
        stage.ears.portions = 2
        stage.pipe.give(b"1")
        await stage.over.wait()
    assert stage.ears.end_reason == "slow reader: no progress for 0.05 seconds"


async def test_a_portion_that_waits_for_a_broken_connection_is_worked_off() -> None:
    limits = OutboundLimits(low_water_bytes=10, high_water_bytes=50)
    async with running_session(limits, room=0) as stage:
        stage.session.write(b"x" * 60)
        stage.ears.portions = 1
        stage.pipe.give(b"1")
        await anyio.wait_all_tasks_blocked()
        stage.pipe.send_failure = BrokenPipeError("broken pipe")
        stage.pipe.read(1)
        stage.pipe.give(b"2")
        stage.pipe.give(b"")
        await stage.over.wait()
    assert stage.ears.heard[2:] == ["received 1", "go on", "received 2", "ended", "closed"]


async def test_a_connection_that_breaks_while_a_piece_is_sent_sends_nothing_more() -> None:
    """Reading notices first; the send that is under way may still succeed."""
    async with running_session(OutboundLimits(flush_timeout_s=0.2), room=0) as stage:
        stage.session.write(b"x" * 300_000)
        stage.session.write(b"y")
        await anyio.wait_all_tasks_blocked()
        stage.session._lose(ConnectionResetError("reset by peer"))
        stage.pipe.read(400_000)
        await stage.over.wait()
    assert stage.session.outbound_bytes == 0
    assert len(stage.pipe.sent) <= 300_000
    assert stage.ears.end_reason == "reset by peer"
