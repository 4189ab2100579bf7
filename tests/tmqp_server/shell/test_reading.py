"""A session that stops its peer, and one that wants to know when its bytes have left."""

from __future__ import annotations

from tests.tmqp_server.shell.stage import Stage, marks
from tmqp_server.shell.steps import READ, WAIT


def test_a_session_that_waits_is_not_read_from_until_it_is_answered() -> None:
    stage = Stage(portion_bytes=100)
    stage.open(1)
    assert stage.hear(1, "list; list; stop") == WAIT
    assert stage.resumed == [], "the first answer came before the chunk was read to its end"
    stage.go_on()
    assert stage.resumed == [1]


def test_a_session_that_is_answered_at_once_is_read_on() -> None:
    stage = Stage()
    stage.open(1)
    assert stage.hear(1, "stop; list") == READ


def test_a_deadline_may_let_a_session_be_read_again() -> None:
    stage = Stage()
    session = stage.open(1)
    session.due = 5.0
    assert stage.hear(1, "stop") == WAIT
    stage.pass_time(4.0)
    assert stage.resumed == []
    stage.pass_time(2.0)
    assert session.deadlines == [5.0]
    assert stage.resumed == [1]
    assert stage.hear(1, "list") == READ


def test_deliveries_reach_a_session_that_reads_nothing() -> None:
    stage = Stage()
    stage.open(1)
    consumer = stage.open(2, "join c")
    assert stage.hear(2, "stop") == WAIT
    stage.hear(1, "push c m1")
    assert consumer.words() == ["line:m1"]
    assert stage.resumed == []


def test_one_that_is_blocked_and_waits_is_read_when_both_are_over() -> None:
    stage = Stage(marks(most=4_000, high=100, low=50))
    session = stage.open(1, room=0)
    session.due = 5.0
    stage.say(b"x" * 3_000)
    assert stage.hear(1, "stop") == WAIT
    stage.read(10_000)
    assert stage.resumed == [], "its protocol still waits"
    stage.pass_time(6.0)
    assert session.deadlines == [5.0]
    assert stage.resumed == [1]


def test_written_is_said_once_all_has_left() -> None:
    stage = Stage()
    session = stage.open(1, room=150)
    stage.hear(1, "list; tell; list")
    assert session.told == [], "200 bytes were said, 150 taken"
    stage.read(49)
    assert session.told == []
    stage.now = 3.0
    stage.read(1)
    assert session.told == [3.0]
    stage.read(1_000)
    stage.hear(1, "list")
    assert session.told == [3.0], "once"


def test_written_is_said_at_once_where_nothing_waits() -> None:
    stage = Stage()
    session = stage.open(1)
    stage.hear(1, "list; tell")
    assert session.told == [0.0]


def test_written_was_not_said_where_there_was_nothing_to_say() -> None:
    stage = Stage()
    session = stage.open(1)
    stage.hear(1, "tell")
    assert session.told == [0.0]


def test_what_is_said_then_is_sent_and_told_again() -> None:
    """And a session that wants it without end, saying nothing, is told once."""
    stage = Stage()
    session = stage.open(1, room=0)
    session.parting = b"and this"
    stage.say(b"first")
    stage.hear(1, "tell")
    stage.read(5)
    assert session.told == [0.0]
    session.parting = b""
    session.wants_written = True
    stage.read(100)
    assert bytes(stage.wires[1].sent) == b"firstand this"
    assert len(session.told) == 2


def test_the_end_of_a_session_is_not_told_as_written() -> None:
    stage = Stage()
    session = stage.open(1, room=0)
    stage.hear(1, "list; tell")
    stage.wires[1].failure = OSError("broken pipe")
    stage.read(100)
    stage.pass_time(60.0)
    assert 1 in stage.closed
    assert session.told == []
