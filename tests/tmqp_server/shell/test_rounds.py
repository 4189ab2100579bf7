"""Chunks of several connections that come together: what they lead to is written once."""

from __future__ import annotations

from tests.tmqp_server.shell.stage import Stage, StubWire
from tmqp_server.shell.steps import END, READ, WAIT
from tmqp_server.shell.world import INTERNAL_ERROR


def stage_of(producers: int) -> Stage:
    """A consumer, number 1, and producers from number 2 on, in the middle of a round."""
    stage = Stage()
    for number in range(2, 2 + producers):
        stage.open(number)
    stage.open(1, "join c")
    stage.turn.begin_round()
    return stage


def test_a_consumer_gets_what_several_producers_push_in_one_piece() -> None:
    stage = stage_of(3)
    for number in (2, 3, 4):
        assert stage.hear(number, f"push c m{number}") == READ
    wire = stage.wires[1]
    assert wire.calls == 0
    stage.turn.end_round(stage.now)
    assert wire.calls == 1
    assert bytes(wire.sent) == b"line:m2\nline:m3\nline:m4\n"
    stage.hear(2, "push c alone")
    assert wire.calls == 2


def test_nobody_waits_for_more_than_sixteen_chunks() -> None:
    stage = stage_of(20)
    for number in range(2, 22):
        stage.hear(number, f"push c m{number}")
    assert stage.wires[1].calls == 1
    assert stage.wires[1].sent.count(b"\n") == 16
    stage.turn.end_round(stage.now)
    assert stage.wires[1].sent.count(b"\n") == 20


def test_who_fails_ends_at_once_and_takes_nothing_from_the_others() -> None:
    stage = stage_of(2)
    stage.hear(2, "push c m1")
    stage.door.sessions[3].fault = "receive"
    assert stage.hear(3, "push c m2") == END
    assert stage.closed == {3: INTERNAL_ERROR}
    assert stage.turn.end_round(stage.now)
    assert bytes(stage.wires[1].sent) == b"line:m1\n"


def test_who_has_lost_its_name_to_a_chunk_before_is_not_heard() -> None:
    stage = Stage()
    stage.open(1, "join c")
    stage.open(2)
    stage.wires[3] = StubWire()
    stage.turn.opened(3, stage.door, stage.wires[3], "host", stage.now)
    stage.turn.begin_round()
    assert stage.hear(3, "takeover n2") == READ
    assert stage.hear(2, "push c m1") == END
    stage.turn.end_round(stage.now)
    assert stage.wires[1].sent == b""
    assert list(stage.closed) == [2]


def test_the_end_of_a_stream_is_the_end_in_a_round_as_well() -> None:
    stage = stage_of(2)
    stage.hear(2, "push c m1")
    stage.hear(3, "list")
    stage.end(3)
    assert stage.wires[3].sent, "it had asked for something"
    stage.turn.end_round(stage.now)
    assert bytes(stage.wires[1].sent) == b"line:m1\n"


def test_a_session_that_waits_ends_the_round_early() -> None:
    stage = stage_of(2)
    stage.hear(2, "push c m1")
    assert stage.hear(3, "stop") == WAIT
    assert bytes(stage.wires[1].sent) == b"line:m1\n"
