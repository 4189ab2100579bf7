"""What waits for a slow peer: when it is held back, flushed and cut."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.shell.stage import Stage, StubWire, marks
from tmqp_server.shell.outbound import (
    BEHIND,
    BLOCK,
    CUT,
    EMPTY,
    FLUSHING,
    KEPT,
    LOST,
    OPEN,
    SENT,
    UNBLOCK,
    Outbound,
)
from tmqp_server.shell.steps import END, READ, WAIT


def outbound(room: int = 0, **limits: float) -> tuple[Outbound, StubWire]:
    wire = StubWire(room)
    return Outbound(1, wire, "host", marks(**limits)), wire  # type: ignore[arg-type]


def say(out: Outbound, wire: StubWire, data: bytes) -> None:
    """Send what the wire takes, and keep the rest, where nothing waits."""
    out.keep(data, wire.send(data), 0.0)


def drain(out: Outbound, wire: StubWire, count: int, now: float = 0.0) -> int:
    """The peer reads so much; returns what followed from it."""
    wire.room += count
    found = 0
    while piece := out.piece():
        sent = wire.send(piece[out.offset :])
        if not sent:
            break
        found |= out.taken(sent, now)
    return found


def test_what_the_kernel_takes_at_once_needs_no_writer() -> None:
    stage = Stage()
    stage.open()
    for _ in range(10):
        stage.say(b"x")
    assert stage.wires[1].calls == 10
    assert stage.wires[1].sent == b"x" * 10
    assert stage.writing == []


def test_bytes_never_overtake_a_piece_that_is_being_sent() -> None:
    out, wire = outbound(room=10)
    assert out.give(b"a" * 100, 0.0) == KEPT
    wire.room = 200
    assert out.give(b"b" * 50, 0.0) == KEPT
    assert drain(out, wire, 0) == EMPTY
    assert wire.sent == b"a" * 100 + b"b" * 50
    assert out.state == OPEN
    assert out.bytes == 0


def test_one_writer_at_a_time() -> None:
    stage = Stage(marks(low=0, high=10))
    stage.open(room=5)
    stage.say(b"x" * 20)
    stage.say(b"y" * 20)
    assert stage.writing == [1]
    stage.read(15)
    assert stage.writing == [1]
    stage.read(100)
    stage.say(b"z" * 1_000)
    assert stage.writing == [1, 1]
    stage.read(1_000)
    assert stage.wires[1].sent == b"x" * 20 + b"y" * 20 + b"z" * 1_000


def test_a_slow_reader_is_held_back_then_served_again() -> None:
    stage = Stage(marks(low=50, high=100))
    stage.open(room=0)
    for count in range(4):
        assert stage.out().blocked == (count > 3)
        stage.say(b"x" * 30)
    assert stage.out().blocked
    stage.read(60)
    assert stage.out().blocked  # 60 bytes wait: above the low mark
    stage.read(10)
    assert not stage.out().blocked
    stage.read(1_000)
    assert stage.out().bytes == 0
    assert stage.wires[1].sent == b"x" * 120


def test_what_is_delivered_waits_while_the_peer_is_held_back() -> None:
    stage = Stage(marks(low=0, high=10))
    slow = stage.open(1, "join c", room=0)
    stage.open(2)
    stage.hear(2, "push c m1; push c m2")
    assert stage.out(1).blocked
    stage.hear(2, "push c m3")
    assert slow.words() == ["line:m1", "line:m2"]
    stage.read(1_000)
    assert not stage.out(1).blocked


def test_small_pieces_share_a_send() -> None:
    out, wire = outbound()
    for _ in range(1_000):
        out.give(b"0123456789", 0.0)
    before = wire.calls
    drain(out, wire, 10_000)
    assert wire.sent == b"0123456789" * 1_000
    assert wire.calls - before <= 2  # the first piece stands by itself


def test_joined_pieces_are_not_larger_than_they_may_be() -> None:
    out, _ = outbound()
    for _ in range(3):
        out.give(b"x" * 200_000, 0.0)
    sizes = []
    while piece := out.piece():
        sizes.append(len(piece))
        out.taken(len(piece), 0.0)
    assert sizes == [200_000] * 3


def test_a_large_piece_is_not_copied_again_for_each_part_of_it() -> None:
    out, wire = outbound()
    data = bytes(range(250)) * 10_000
    out.give(data, 0.0)
    for _ in range(25):
        assert out.piece() is data
        drain(out, wire, 100_000)
    assert wire.sent == data


# --- Cutting -------------------------------------------------------------------------------------


def test_no_progress_for_the_stall_time_cuts() -> None:
    stage = Stage(marks(stall_s=0.5))
    stage.open(room=5)
    stage.say(b"0123456789")
    stage.pass_time(0.4)
    assert not stage.closed
    stage.pass_time(0.2)
    assert stage.closed == {1: "slow reader: no progress for 0.5 seconds"}


def test_a_byte_now_and_then_is_progress() -> None:
    stage = Stage(marks(stall_s=0.5))
    stage.open(room=0)
    stage.say(bytes(range(12)))
    for _ in range(12):
        stage.pass_time(0.4)
        stage.read(1)
    assert not stage.closed
    assert stage.wires[1].sent == bytes(range(12))
    assert stage.out().due() == math.inf


def test_a_reader_that_asks_for_more_than_it_reads_is_cut() -> None:
    stage = Stage(marks(low=10, high=50, most=100))
    stage.open(room=0)
    stage.say(b"x" * 60)
    stage.say(b"x" * 40)
    assert not stage.closed
    assert stage.out().bytes == 100
    stage.say(b"x")
    assert stage.closed == {1: "slow reader: over 100 bytes are waiting"}


def test_one_message_above_the_limit_is_no_reason_to_cut() -> None:
    """It cut every healthy consumer of a message larger than max_outbound_bytes, for ever."""
    stage = Stage(marks(low=10, high=50, most=100))
    stage.open(room=0)
    stage.say(b"x" * 1_000)
    assert stage.out().blocked
    stage.read(1_000)
    assert not stage.out().blocked
    assert not stage.closed
    assert stage.wires[1].sent == b"x" * 1_000


def test_a_cut_session_sends_nothing_more_and_keeps_the_first_reason() -> None:
    stage = Stage(marks(low=0, high=1, most=10))
    stage.open(room=3)
    stage.say(b"0123456789")
    stage.say(b"0123456789")
    stage.read(100)
    stage.say(b"more")
    assert stage.wires[1].sent == b"012"
    assert stage.closed == {1: "slow reader: over 10 bytes are waiting"}
    assert stage.turn.outbound(1) is None


# --- The end -------------------------------------------------------------------------------------


def test_the_end_of_the_stream_leaves_time_for_what_waits() -> None:
    stage = Stage()
    stage.open(room=0)
    stage.say(b"last words")
    stage.end()
    assert stage.steps[1] == END
    assert not stage.closed
    stage.read(10)
    assert stage.wires[1].sent == b"last words"
    assert stage.closed == {1: "end"}


def test_but_not_for_ever() -> None:
    stage = Stage(marks(flush_s=0.5))
    stage.open(room=0)
    stage.say(b"last words")
    stage.end()
    stage.pass_time(0.4)
    assert not stage.closed
    stage.pass_time(0.2)
    assert stage.closed == {1: "end"}


def test_a_session_closed_from_this_side_flushes_and_ends_though_its_peer_is_silent() -> None:
    stage = Stage()
    stage.open(room=0)
    stage.say(b"Terminate")
    stage.turn.close_all("enough", stage.now)
    stage.attend()
    assert not stage.closed
    stage.read(9)
    assert stage.closed == {1: "enough"}


def test_what_came_before_a_failed_send_is_still_worked_off() -> None:
    """A producer that closes without reading its acknowledges has pushed all the same."""
    stage = Stage()
    stage.open(1)
    consumer = stage.open(2, "join c")
    stage.wires[1].failure = BrokenPipeError(32, "broken pipe")
    stage.say(b"answer")
    assert stage.out().state == LOST
    assert stage.hear(1, "push c m1") == READ
    assert stage.hear(1, "push c m2") == READ
    assert consumer.words() == ["line:m1", "line:m2"]
    stage.end()
    assert stage.closed == {1: "broken pipe"}


def test_a_failed_send_ends_a_session_whose_reading_does_not() -> None:
    stage = Stage(marks(flush_s=0.5))
    stage.open()
    stage.wires[1].failure = BrokenPipeError(32, "broken pipe")
    stage.say(b"answer")
    stage.say(b"another")
    assert not stage.closed
    stage.pass_time(0.6)
    assert stage.closed == {1: "broken pipe"}


def test_a_send_that_fails_later_is_the_same() -> None:
    stage = Stage(marks(flush_s=0.5))
    stage.open(room=3)
    stage.say(b"answer")
    stage.wires[1].failure = BrokenPipeError(32, "broken pipe")
    stage.read(1)
    assert stage.out().state == LOST
    assert stage.hear(1, "list") == READ
    stage.pass_time(0.6)
    assert stage.closed == {1: "[Errno 32] broken pipe"}


def test_a_reset_is_the_reason_not_the_end_of_stream_it_causes() -> None:
    stage = Stage()
    stage.open()
    stage.turn.broken(1, "reset by peer", stage.now)
    stage.attend()
    assert stage.closed == {1: "reset by peer"}


# --- Reading -------------------------------------------------------------------------------------


def test_who_does_not_read_its_answers_is_not_read_from_either() -> None:
    stage = Stage(marks(low=10, high=50, most=200))
    stage.open(room=0)
    stage.say(b"x" * 60)
    assert stage.hear(1, "bye") == READ
    stage.say(b"x" * 41)  # more than half of what may wait
    assert stage.hear(1, "bye") == WAIT
    stage.read(90)
    assert stage.resumed == []
    stage.read(1)
    assert stage.resumed == [1]


def test_the_next_portion_waits_until_the_last_was_read() -> None:
    stage = Stage(marks(low=0, high=150), portion_bytes=150)
    session = stage.open(room=0)
    assert stage.hear(1, "; ".join(["list"] * 5)) == WAIT
    stage.go_on()
    assert session.words() == ["Reply"] * 2
    stage.read(200)
    stage.go_on()
    assert session.words() == ["Reply"] * 2
    stage.read(200)
    stage.go_on()
    assert session.words() == ["Reply"]
    assert stage.resumed == [1]  # what waits now is less than may


def test_the_stall_time_holds_while_a_portion_waits() -> None:
    stage = Stage(marks(low=0, high=150, stall_s=0.5), portion_bytes=150)
    stage.open(room=0)
    stage.hear(1, "; ".join(["list"] * 5))
    stage.go_on()
    stage.pass_time(0.6)
    assert stage.closed == {1: "slow reader: no progress for 0.5 seconds"}


def test_a_portion_that_waits_for_a_broken_connection_is_worked_off() -> None:
    stage = Stage(marks(low=0, high=150), portion_bytes=150)
    session = stage.open(room=0)
    stage.hear(1, "; ".join(["list"] * 5))
    stage.wires[1].failure = BrokenPipeError(32, "broken pipe")
    stage.read(1)
    stage.go_on()
    assert session.words() == ["Reply"] * 5
    assert stage.resumed == [1]
    assert stage.hear(1, "list") == READ
    stage.end()
    assert stage.closed == {1: "[Errno 32] broken pipe"}


# --- States --------------------------------------------------------------------------------------


def _in_state(state: int) -> Outbound:
    out, _ = outbound(room=0, high=100, most=200, low=10)
    if state in (BEHIND, FLUSHING):
        out.give(b"x" * 50, 0.0)
    if state == FLUSHING:
        assert not out.finish(0.0)
    if state == LOST:
        out.lose("broken", 0.0)
    assert out.state == state
    return out


@pytest.mark.parametrize("state", [OPEN, BEHIND, FLUSHING, LOST])
def test_what_is_given_is_kept_while_there_is_somebody(state: int) -> None:
    out = _in_state(state)
    waited = out.bytes
    assert out.give(b"y" * 10, 1.0) == (SENT if state == LOST else KEPT)
    assert out.bytes == waited + (0 if state == LOST else 10)
    if state != LOST:
        assert out.give(b"y" * 100, 1.0) == BLOCK
        assert out.give(b"y" * 100, 1.0) == CUT


@pytest.mark.parametrize("state", [OPEN, BEHIND, FLUSHING, LOST])
def test_an_end_waits_only_for_bytes_that_can_be_sent(state: int) -> None:
    out = _in_state(state)
    assert out.finish(1.0) == (state in (OPEN, LOST))
    if state == BEHIND:
        assert (out.state, out.due()) == (FLUSHING, 3.0)


@pytest.mark.parametrize("state", [OPEN, BEHIND, FLUSHING, LOST])
def test_a_lost_connection_is_only_read_from(state: int) -> None:
    out = _in_state(state)
    assert out.lose("later", 1.0) == (state == FLUSHING)
    if state != FLUSHING:
        assert out.state == LOST
        assert out.bytes == 0
        assert not out.blocked
        assert out.due() == (2.0 if state == LOST else 3.0)
        assert out.taken(5, 1.0) == 0
    assert out.reason == ("broken" if state == LOST else "later")


def test_the_low_mark_and_the_end_may_come_together() -> None:
    out, wire = outbound(room=0, high=10, low=0)
    assert out.give(b"x" * 20, 0.0) == BLOCK
    assert drain(out, wire, 20) == UNBLOCK | EMPTY


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 60)), max_size=40))
def test_the_quick_copy_and_its_slow_duplicate_agree(moves: list[tuple[bytes, int]]) -> None:
    """``Turn`` sends directly where ``Outbound.give`` would; each byte goes out once, in order."""
    limits = marks(low=20, high=60, most=10_000)
    stage = Stage(limits)
    stage.open(room=0)
    duplicate, wire = outbound(room=0, low=20, high=60, most=10_000)
    whole = b""
    for data, room in moves:
        if data:
            whole += data
            stage.say(data)
            duplicate.give(data, 0.0)
        stage.read(room)
        drain(duplicate, wire, room)
        out = stage.out()
        assert (out.state, out.bytes, out.blocked) == (
            duplicate.state,
            duplicate.bytes,
            duplicate.blocked,
        )
        assert stage.wires[1].sent == wire.sent
    stage.read(100_000)
    assert stage.wires[1].sent == whole


@pytest.mark.parametrize("count", [0, 1, 20, 21, 70, 90])
def test_the_last_bytes_that_wait_can_be_kept_back(count: int) -> None:
    out, wire = outbound(room=10)
    say(out, wire, b"a" * 100)
    out.give(b"b" * 50, 0.0)
    out.give(b"c" * 20, 0.0)
    assert out.unsent(goes_on=False) == 160
    out.take_back(count)
    assert out.bytes == 160 - count
    drain(out, wire, 1_000)
    assert wire.sent == (b"a" * 100 + b"b" * 50 + b"c" * 20)[: 170 - count]


def test_what_waits_can_be_kept_back_whole() -> None:
    out, wire = outbound(room=10)
    say(out, wire, b"a" * 100)
    out.take_back(90)
    assert (out.bytes, out.state, out.piece()) == (0, OPEN, b"")
    assert out.finish(0.0), "there is nothing to be waited for"


def test_of_a_piece_that_a_writer_has_nobody_knows_whether_it_has_left() -> None:
    out, wire = outbound(room=10)
    say(out, wire, b"a" * 100)
    out.give(b"b" * 50, 0.0)
    out.writing = True
    assert out.unsent(goes_on=False) == 50
    wire.is_exact = True
    assert out.unsent(goes_on=False) == 140, "all that was taken was told"
    assert out.unsent(goes_on=True) == 50, "it is still sent"
