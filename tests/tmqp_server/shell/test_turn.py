"""One turn: the order of things, portions, faults, deadlines, and the end."""

from __future__ import annotations

import math

import pytest

from tests.tmqp_server.shell.stage import Stage, marks
from tmqp_server.access.gate import AUTHENTICATE, Verdict
from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, Connect, HttpAnswered
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.steps import END, GONE, NOT_YET, READ, SENT, WAIT
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import Abandon, Ask, Drained


def test_each_touched_session_is_written_to_once_a_turn() -> None:
    stage = Stage()
    stage.open(1)
    consumer = stage.open(2, "join c")
    stage.hear(1, "push c m1; push c m2; push c m3")
    assert consumer.words() == ["line:m1", "line:m2", "line:m3"]
    assert stage.wires[2].calls == 1


def test_a_chunk_that_asks_for_much_lets_others_have_their_turn() -> None:
    stage = Stage(portion_bytes=100)
    greedy = stage.open(1)
    modest = stage.open(2)
    assert stage.hear(1, "; ".join(["list"] * 50)) == WAIT
    assert greedy.words() == ["Reply"]
    assert stage.hear(2, "list") == READ
    assert modest.words() == ["Reply"]
    stage.go_on()
    assert greedy.words() == ["Reply"] * 49
    assert stage.resumed == [1]


def test_those_who_ask_for_much_take_turns() -> None:
    stage = Stage(portion_bytes=100)
    sessions = [stage.open(number) for number in (1, 2, 3)]
    for number in (1, 2, 3):
        stage.hear(number, "; ".join(["list"] * 4))
    counts = []
    while stage.goes_on:
        stage.goes_on = False
        stage.turn.go_on(stage.now)
        stage.attend()
        counts.append(tuple(len(each.said) for each in sessions))
    assert counts[:4] == [(2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2)]
    assert counts[-1] == (4, 4, 4)
    assert stage.resumed == [1, 2, 3]


def test_what_a_client_says_before_its_end_counts() -> None:
    """However many portions it takes."""
    stage = Stage(portion_bytes=100)
    producer = stage.open(1)
    consumer = stage.open(2, "join c")
    stage.hear(1, "; ".join([f"push c m{number}" for number in range(30)]))
    producer.close_reason = "said good bye"
    stage.go_on()
    assert len(consumer.words()) == 30
    assert stage.closed == {1: "said good bye"}


# --- Faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["apply", "deliver", "send", "receive", "deadline"])
def test_a_faulty_session_ends_alone_and_is_logged(where: str) -> None:
    stage = Stage()
    producer = stage.open(1)
    bad = stage.open(2, "join c")
    good = stage.open(3, "join c")
    bad.fault = where
    if where == "deadline":
        bad.due = stage.now
        stage.turn._timers.put(stage.now, 2)
        stage.pass_time(0.1)
    elif where in ("apply", "receive"):
        stage.hear(2, "list")
    stage.hear(1, "push c m1; push c m2; list")
    assert stage.closed == {2: "an internal error"}
    assert good.words() == ["line:m1", "line:m2"]
    assert producer.words() == ["Reply"]
    (log,) = stage.logs
    assert (log.text, log.session) == ("the session failed", 2)
    assert str(log.error) == f"a fault of the door: {where}"
    stage.hear(1, "push c m3")
    assert good.words() == ["line:m3"]


def test_a_wire_that_fails_otherwise_is_a_fault_of_its_session() -> None:
    stage = Stage()
    stage.open(1)
    stage.wires[1].failure = ValueError("a bug")
    stage.say(b"x")
    assert stage.closed == {1: "an internal error"}


def test_a_delivery_nobody_can_encode_ends_nobody() -> None:
    stage = Stage()
    stage.open(1)
    consumer = stage.open(2, "join c")
    stage.door.fault = True
    stage.hear(1, "push c m1")
    stage.door.fault = False
    stage.hear(1, "push c m2")
    assert consumer.words() == ["line:m2"]
    assert not stage.closed
    assert [log.text for log in stage.logs] == ["a delivery cannot be encoded"]


@pytest.mark.cold  # a compiled class cannot be patched
def test_a_broker_that_fails_at_a_deadline_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    session = stage.open(1)
    tried: list[float] = []

    def fail(_hub: Hub, now: float) -> None:
        tried.append(now)
        if len(tried) == 3:
            monkeypatch.setattr(Hub, "broker_deadline", lambda _: None)
            return
        raise ValueError("a fault of the broker")

    monkeypatch.setattr(Hub, "on_broker_deadline", fail)
    monkeypatch.setattr(Hub, "broker_deadline", lambda _: 0.0)
    stage.pass_time(5.0)
    assert tried == [0.0, 1.0, 2.0]
    assert stage.hear(1, "list") == READ
    assert session.words() == ["Reply"]
    assert [log.text for log in stage.logs] == ["the broker failed at a deadline"] * 2


@pytest.mark.cold
def test_a_fault_at_an_answer_from_outside_ends_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to nobody who could be told."""
    stage = Stage()
    stage.open(1)

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Hub, "perform", fail)
    stage.turn._tell_answer(HttpAnswered(1, 200), stage.now)
    stage.attend()
    assert not stage.closed
    assert [log.text for log in stage.logs] == ["the answer to an HTTP call failed"]


# --- Time ----------------------------------------------------------------------------------------


def test_nothing_is_due_while_nobody_wants_anything() -> None:
    stage = Stage()
    assert stage.turn.next_deadline() == math.inf
    stage.door.due = None
    stage.open(1)
    assert stage.turn.next_deadline() == math.inf


def test_an_earlier_deadline_wakes_the_world() -> None:
    stage = Stage()
    patient = stage.open(1)
    patient.due = 1_000.0
    stage.turn.next_deadline()
    hasty = stage.open(2)
    stage.wakes = 0
    hasty.due = 5.0
    stage.hear(2, "list")
    assert stage.wakes == 1
    stage.pass_time(6.0)
    assert hasty.deadlines == [5.0]
    assert patient.deadlines == []


def test_a_deadline_that_moves_away_is_not_served_early() -> None:
    stage = Stage()
    session = stage.open(1)
    session.due = 5.0
    stage.hear(1, "list")
    session.due = 7.0  # as if bytes came: nobody tells the turn
    stage.pass_time(6.0)
    assert session.deadlines == []
    stage.pass_time(2.0)
    assert session.deadlines == [7.0]


def test_a_deadline_that_stays_in_the_past_blocks_nobody() -> None:
    stage = Stage()
    session = stage.open(1)
    session.stubborn = True
    session.due = 0.0
    stage.hear(1, "list")
    stage.turn.on_deadline(stage.now)
    assert session.deadlines == [0.0]
    other = stage.open(2)
    stage.hear(2, "list")
    assert other.words() == ["Reply"]
    assert stage.turn.next_deadline() == 0.0


def test_one_that_is_still_reading_is_not_asked_whether_it_lives() -> None:
    """A ping behind megabytes for a slow line: no answer in time would have ended it."""
    stage = Stage()
    session = stage.open(1, room=0)
    session.due = 1.0
    stage.hear(1, "list")
    stage.pass_time(5.0)
    assert session.deadlines == []
    stage.read(1_000)
    stage.pass_time(1.5)
    assert session.deadlines != []


def test_the_timers_of_the_dead_do_not_pile_up() -> None:
    """Whatever the deadlines are: a thousand who come and go leave a few entries."""
    stage = Stage()
    for number in range(1, 6):
        stage.open(number)
    for number in range(100, 1_100):
        stage.open(number)
        stage.end(number)
    assert len(stage.turn._timers._heap) < 300
    assert sorted(stage.turn._timers._due) == [1, 2, 3, 4, 5]


# --- Questions -----------------------------------------------------------------------------------


class Guarded(Stage):
    """A stage whose hub asks about rights."""

    def __init__(self) -> None:
        super().__init__()
        self.hub = Hub(Broker(), guarded=True)
        self.turn = Turn(self.hub, marks())

    def asked(self) -> list[Ask]:
        """What somebody has to decide since the last call."""
        found = [each for each in self.others if isinstance(each, Ask)]
        self.others = [each for each in self.others if not isinstance(each, Ask)]
        return found

    def decide(self, ask: Ask, allowed: bool) -> None:
        """The answer."""
        command = ask.question.command
        connect = command if allowed and isinstance(command, Connect) else None
        self.turn.decided(ask, Verdict(allowed, connect=connect), self.now)
        self.attend()

    def knock(self, number: int) -> Ask:
        """Somebody who wants to be let in."""
        self.open(number)
        (ask,) = self.asked()
        assert ask.question.right == AUTHENTICATE
        return ask


def test_a_session_is_not_read_from_while_a_question_is_open() -> None:
    stage = Guarded()
    ask = stage.knock(1)
    assert stage.steps[1] == WAIT
    stage.decide(ask, True)
    assert stage.resumed == [1]
    assert stage.hear(1, "join c") == WAIT
    (ask,) = stage.asked()
    stage.decide(ask, True)
    assert stage.resumed == [1, 1]
    assert stage.door.sessions[1].words() == ["Accept", "Reply"]


def test_a_refused_log_in_is_told_after_a_pause_that_doubles() -> None:
    stage = Guarded()
    for number, pause_s in ((1, 0.25), (2, 0.5), (3, 1.0)):
        stage.decide(stage.knock(number), False)
        session = stage.door.sessions[number]
        stage.pass_time(pause_s - 0.01)
        assert session.words() == []
        stage.pass_time(0.02)
        assert session.words() == ["Refuse"]


def test_an_answer_that_does_not_come_is_a_refusal_and_comes_too_late() -> None:
    stage = Guarded()
    stage.decide(stage.knock(1), True)
    stage.hear(1, "join c")
    (ask,) = stage.asked()
    stage.pass_time(10.1)
    assert stage.door.sessions[1].words() == ["Accept", "Reply"]
    assert [type(each) for each in stage.others] == [Abandon]
    assert [log.text for log in stage.logs] == ["join 'c': not answered in time, refused"]
    stage.hear(1, "join d")
    (other,) = stage.asked()
    stage.decide(ask, True)  # too late: not taken for the answer to the next
    assert stage.door.sessions[1].words() == []
    stage.decide(other, False)
    assert stage.door.sessions[1].words() == ["Reply"]


def test_nobody_is_asked_about_one_who_has_gone() -> None:
    stage = Guarded()
    ask = stage.knock(1)
    stage.turn.broken(1, "reset", stage.now)
    stage.attend()
    (abandon,) = stage.others
    assert isinstance(abandon, Abandon)
    assert abandon.work is ask
    stage.decide(ask, True)
    assert stage.closed == {1: "reset"}


# --- What a hook sends ---------------------------------------------------------------------------


def test_a_hook_sends_when_the_peer_reads() -> None:
    stage = Stage(marks(low=0, high=10))
    stage.open(1, room=0)
    assert stage.turn.send(1, b"x" * 20, stage.now) == SENT
    assert stage.turn.send(1, b"y", stage.now) == NOT_YET
    stage.attend()
    stage.read(20)
    (drained,) = stage.others
    assert isinstance(drained, Drained)
    assert stage.turn.send(1, b"y", stage.now) == SENT
    stage.end(1)
    assert stage.turn.send(1, b"z", stage.now) == GONE


def test_who_waits_to_send_hears_of_the_end() -> None:
    stage = Stage(marks(low=0, high=10, stall_s=1.0))
    stage.open(1, room=0)
    stage.turn.send(1, b"x" * 20, stage.now)
    assert stage.turn.send(1, b"y", stage.now) == NOT_YET
    stage.pass_time(2.0)
    assert [type(each) for each in stage.others] == [Drained]
    assert stage.turn.send(1, b"y", stage.now) == GONE


# --- The end -------------------------------------------------------------------------------------


def test_closing_all_closes_those_to_come_as_well() -> None:
    stage = Stage()
    stage.open(1)
    stage.open(2, room=0)
    stage.say(b"last words", 2)
    stage.turn.close_all("enough", stage.now)
    stage.attend()
    assert stage.closed == {1: "enough"}
    stage.read(100, 2)
    assert stage.closed == {1: "enough", 2: "enough"}
    stage.turn.opened(3, stage.door, stage.wires[1], "host", stage.now)
    stage.attend()
    assert stage.closed[3] == "enough"
    assert not stage.turn._outs


def test_a_session_that_cannot_be_closed_politely_is_cut() -> None:
    stage = Stage()
    stage.open(1)
    bad = stage.open(2)
    stage.open(3)
    bad.fault = "close"
    stage.turn.close_all("enough", stage.now)
    stage.attend()
    assert stage.closed == {1: "enough", 2: "an internal error", 3: "enough"}


def test_what_is_said_of_those_who_are_gone_is_nothing() -> None:
    stage = Stage()
    stage.open(1)
    stage.end(1)
    turn, now = stage.turn, stage.now
    assert turn.received(1, b"list", now) == END
    assert turn.ended(1, now) == turn.broken(1, "x", now) == END
    turn.lost(1, "x", now)
    turn.closed(1, now)
    turn.taken(1, 5, now)
    assert turn.piece(1) == b""
    assert turn.offset(1) == 0
    assert stage.attend() == []


class _Unopened(Door):
    """A door that cannot be opened."""

    name = "unopened"

    def open(self, session: int, now: float) -> DoorSession:
        raise ValueError("a bug of the door")


def test_a_door_that_does_not_open_closes_the_connection() -> None:
    stage = Stage()
    stage.open(1)
    step = stage.turn.opened(2, _Unopened(), stage.wires[1], "host", stage.now)
    assert step & 3 == END
    stage.attend()
    assert stage.closed == {2: "an internal error"}


@pytest.mark.cold
def test_a_fault_of_what_another_server_said_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Hub, "perform", fail)
    stage.turn.perform([Command()], stage.now)
    stage.attend()
    said = "the broker failed to process a message of another server"
    assert [log.text for log in stage.logs] == [said]
