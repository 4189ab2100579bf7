"""A server that drains: what it refuses, what it waits for, and when it is over."""

from __future__ import annotations

from tests.tmqp_server.line_door import LineDoor
from tests.tmqp_server.shell.stage import Stage, StubWire
from tmqp_server.engine.commands import Acknowledge, Batch, ListClients, Push
from tmqp_server.engine.effects import Confirm, Deliver, Refuse, Reply
from tmqp_server.hub.draining import refused_by_drain
from tmqp_server.shell.draining import DRAINED, DRAINING
from tmqp_server.shell.steps import END
from tmqp_server.shell.world import DrainEnded, StopListening


def stage_with_delivery() -> Stage:
    """Client 2 has a message of client 1 in hand."""
    stage = Stage()
    stage.open(2, "join c")
    stage.open(1, "push c first")
    assert stage.hub.in_flight() == 1
    return stage


def acknowledge(stage: Stage, message_id: str = "first") -> None:
    """Client 2 is done with it."""
    stage.turn.perform([Acknowledge(2, message_id, "c", 0)], stage.now)
    stage.attend()


def drain(stage: Stage, *, stops: bool = True) -> None:
    stage.turn.drain(stops, stage.now)
    stage.attend()


def ends(stage: Stage) -> list[bool]:
    return [each.stops for each in stage.others if isinstance(each, DrainEnded)]


def test_with_nothing_in_hand_it_is_over_at_once() -> None:
    stage = Stage()
    stage.open(1)
    drain(stage)
    assert isinstance(stage.others[0], StopListening)
    stage.pass_time(0.0)
    assert ends(stage) == [True]
    assert stage.closed == {1: "the server stops"}
    assert stage.turn.draining.state == DRAINED


def test_it_waits_for_an_acknowledge_and_delivers_nothing_more() -> None:
    stage = stage_with_delivery()
    drain(stage)
    delivered = bytes(stage.wires[2].sent)
    said = stage.hear(1, "push c second")
    assert said != END
    stage.pass_time(3.0)
    assert stage.turn.draining.state == DRAINING
    assert bytes(stage.wires[2].sent) == delivered, "what is pushed now is refused"
    acknowledge(stage)
    stage.pass_time(0.1)
    assert ends(stage) == [True]
    assert sorted(stage.closed) == [1, 2]
    assert "nothing is unacknowledged" in stage.logs[-1].text


def test_it_gives_up_when_its_time_is_over_and_says_so() -> None:
    stage = stage_with_delivery()
    stage.turn.draining.bound_s = 12.0
    drain(stage)
    stage.pass_time(11.9)
    assert ends(stage) == []
    stage.pass_time(0.2)
    assert ends(stage) == [True]
    lines = [each.text for each in stage.logs if each.topic == "drain"]
    assert lines == [
        "draining: 1 deliveries are unacknowledged; 12 s at most",
        "draining: 1 unacknowledged, 7 s left",
        "draining: 1 unacknowledged, 2 s left",
        "drained: after 12.0 s 1 deliveries were unacknowledged; their messages go back",
    ]


def test_who_connects_meanwhile_is_closed_and_who_has_connected_is_refused() -> None:
    stage = stage_with_delivery()
    stage.wires[4] = StubWire()
    stage.turn.opened(4, stage.door, stage.wires[4], "host", stage.now)
    drain(stage)
    stage.hear(4, "connect late")
    assert [each.code for each in stage.door.sessions[4].said if isinstance(each, Refuse)] == [503]
    stage.wires[5] = StubWire()
    assert stage.turn.opened(5, stage.door, stage.wires[5], "host", stage.now) & END
    assert stage.hub.close_reason(5) == "" or "drains" in stage.hub.close_reason(5)


def test_operators_are_served_to_the_end_and_after_it() -> None:
    stage = stage_with_delivery()
    door = LineDoor("operators")
    door.for_operators = True
    drain(stage, stops=False)
    for number in (7, 8):
        stage.wires[number] = StubWire()
        stage.turn.opened(number, door, stage.wires[number], "host", stage.now)
        stage._follow(number, stage.turn.received(number, b"connect op%d" % number, stage.now))
        acknowledge(stage)
        stage.pass_time(1.0)
    assert ends(stage) == [False]
    assert sorted(stage.closed) == [1, 2]
    assert door.sessions[8].said
    drain(stage, stops=True)
    assert ends(stage) == [False, True]


def test_it_begins_once_however_often_it_is_asked() -> None:
    stage = stage_with_delivery()
    drain(stage, stops=False)
    drain(stage, stops=True)
    drain(stage, stops=False)
    assert sum(isinstance(each, StopListening) for each in stage.others) == 1
    acknowledge(stage)
    stage.pass_time(0.1)
    assert ends(stage) == [True], "once somebody has wanted it to stop, it does"


def test_a_peer_that_reads_again_is_delivered_nothing() -> None:
    stage = Stage()
    stage.open(2, "join c", room=0)
    stage.open(1)
    stage.say(b"x" * 300_000, 2)
    assert stage.out(2).blocked
    stage.hear(1, "push c waits")
    drain(stage)
    stage.read(1_000_000, 2)
    assert not stage.out(2).blocked if stage.turn.outbound(2) else True
    assert stage.hub.in_flight() == 0
    assert not any(isinstance(each, Deliver) for each in stage.door.sessions[2].said)


def test_a_batch_is_refused_for_its_pushes_only() -> None:
    push = Push(1, "m", "c", 0, False, True, 1, None)
    answer = Acknowledge(1, "m", "c", 0)
    refused = refused_by_drain(Batch(1, "r", [answer, push]))
    assert refused is not None
    assert [each.code for each in refused if isinstance(each, Reply)] == [503]
    assert refused_by_drain(Batch(1, "r", [answer])) is None
    assert refused_by_drain(ListClients(1, "r")) is None
    told = refused_by_drain(push)
    assert told is not None
    assert [each.reason for each in told if isinstance(each, Confirm)] == ["draining"]
