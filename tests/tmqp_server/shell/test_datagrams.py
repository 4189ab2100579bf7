"""The sources of a UDP socket: who gets a session, what is held, and when it ends."""

from __future__ import annotations

import pytest

from tests.tmqp_server.shell.stage import Stage, StubWire
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.shell.datagrams import DatagramMarks, Datagrams

IDLE_S = 60.0


class Socket:
    """A UDP socket of a stage; ``wires`` are what was sent to each source."""

    def __init__(
        self, stage: Stage, *, most: int = 3, most_per_host: int = 2, held: int = 1_000
    ) -> None:
        self.stage = stage
        marks = DatagramMarks(most, most_per_host, held, IDLE_S)
        self.datagrams = Datagrams(stage.turn, stage.door, marks)
        stage.turn.datagrams.append(self.datagrams)
        self.wires: dict[str, StubWire] = {}
        self.last = 0

    def hear(self, name: str, line: str = "", *, local: bool = False) -> int:
        """A datagram comes; returns the number of its session, 0 if there is none."""
        datagrams = self.datagrams
        stage = self.stage
        host = name.partition(":")[0]
        if not datagrams.number_of(name):
            if not datagrams.admits(host, local, stage.now):
                return self.attend()
            self.last += 1
            wire = self.wires[name] = StubWire()
            datagrams.opened(name, host, self.last, wire, stage.now)
        datagrams.received(name, line.encode(), stage.now)
        number = datagrams.number_of(name)
        self.attend()
        return number

    def attend(self) -> int:
        """Carry out what the turn wants."""
        stage = self.stage
        stage.attend()
        while stage.resumed:
            self.datagrams.resumed(stage.resumed.pop(0), stage.now)
            stage.attend()
        for number in stage.closed:
            self.datagrams.closed(number)
        return 0

    def pass_time(self, seconds: float) -> None:
        """So much later."""
        self.stage.pass_time(seconds)
        self.attend()


def test_each_source_has_a_session_of_its_own() -> None:
    stage = Stage()
    socket = Socket(stage)
    assert socket.hear("a:1", "connect one; join c") == 1
    assert socket.hear("a:2", "connect two") == 2
    assert socket.hear("a:2", "push c m1") == 2
    assert stage.door.sessions[1].words() == ["Accept", "Reply", "line:m1"]
    assert (socket.datagrams.count, socket.datagrams.refused) == (2, 0)
    assert bytes(socket.wires["a:1"].sent), "what it was told has left"


def test_a_source_that_is_quiet_loses_its_session_and_hears_of_it() -> None:
    stage = Stage()
    socket = Socket(stage)
    socket.hear("a:1", "connect one")
    socket.pass_time(IDLE_S - 1.0)
    socket.hear("b:1", "connect two")
    socket.pass_time(2.0)
    assert stage.closed == {1: "no datagram for 60 s"}
    assert socket.datagrams.count == 1
    assert socket.hear("a:1", "connect one") == 3, "it begins anew"
    socket.pass_time(IDLE_S * 2)
    assert sorted(stage.closed) == [1, 2, 3]
    assert [stage.turn.outbound(number) for number in (1, 2, 3)] == [None] * 3
    assert socket.datagrams.count == 0


def test_an_empty_datagram_keeps_a_session() -> None:
    stage = Stage()
    socket = Socket(stage)
    socket.hear("a:1", "connect one")
    for _ in range(5):
        socket.pass_time(IDLE_S - 1.0)
        assert socket.hear("a:1", "") == 1
    assert stage.closed == {}


def test_a_flood_of_sources_gets_no_more_sessions_than_allowed_and_ends_none() -> None:
    stage = Stage()
    socket = Socket(stage, most=3, most_per_host=2)
    assert socket.hear("good:1", "connect good; join c")
    for port in range(500):
        socket.hear(f"bad:{port}", f"connect bad{port}")
    assert (socket.datagrams.count, socket.datagrams.refused) == (3, 498)
    socket.hear("other:1")
    assert socket.datagrams.refused == 499, "three in all"
    assert len(stage.logs) == 1, "one line, however many there are"
    assert "3 connections" in stage.logs[0].text
    assert socket.hear("good:1", "push c m1") == 1
    assert "line:m1" in stage.door.sessions[1].words()
    socket.pass_time(IDLE_S + 1.0)
    assert socket.datagrams.count == 0
    assert socket.hear("other:1", "connect other"), "there is room again"


def test_this_machine_may_have_all_sessions_of_a_socket() -> None:
    socket = Socket(Stage(), most=3, most_per_host=1)
    assert [bool(socket.hear(f"::1:{n}", f"connect n{n}", local=True)) for n in range(4)] == [
        True, True, True, False,
    ]  # fmt: skip


def test_a_session_that_its_door_ends_makes_room_at_once() -> None:
    stage = Stage()
    socket = Socket(stage, most=1, most_per_host=1)
    first = socket.hear("a:1", "connect one")
    stage.door.sessions[first].close_reason = "enough"
    socket.hear("a:1", "bye")
    assert socket.datagrams.count == 0
    assert socket.hear("b:1", "connect two") == 2


def test_what_comes_while_a_session_does_not_read_is_held_up_to_the_limit() -> None:
    stage = Stage()
    stage.door.due = 5.0  # then a session reads again
    socket = Socket(stage, held=1_000)
    socket.hear("a:1", "connect one")
    socket.hear("b:1", "connect two; join c")
    connected = stage.hub.broker.statistics().state_bytes
    socket.hear("a:1", "stop")
    for number in range(20):
        socket.hear("a:1", f"push c m{number}")
    assert 0 < socket.datagrams.held_bytes <= 1_000
    assert stage.hub.broker.statistics().state_bytes == connected + socket.datagrams.held_bytes
    assert socket.datagrams.dropped == 11
    assert "line:m0" not in stage.door.sessions[2].words()
    socket.pass_time(6.0)
    words = [word for word in stage.door.sessions[2].words() if word.startswith("line:m")]
    assert words == [f"line:m{number}" for number in range(9)], "in order"
    assert socket.datagrams.held_bytes == 0


def test_held_datagrams_are_given_back_when_the_session_ends() -> None:
    stage = Stage()
    socket = Socket(stage)
    before = stage.hub.broker.statistics().state_bytes
    socket.hear("a:1", "connect one")
    socket.hear("a:1", "stop")
    socket.hear("a:1", "push c m1")
    assert socket.datagrams.held_bytes > 0
    socket.pass_time(IDLE_S + 1.0)
    assert socket.datagrams.held_bytes == 0
    assert stage.hub.broker.statistics().state_bytes == before


def test_a_fault_of_a_door_ends_the_session_of_one_source() -> None:
    stage = Stage()
    socket = Socket(stage)
    socket.hear("a:1", "connect one")
    socket.hear("b:1", "connect two")
    stage.door.sessions[1].fault = "receive"
    socket.hear("a:1", "list")
    assert sorted(stage.closed) == [1]
    assert socket.datagrams.number_of("b:1") == 2


@pytest.mark.parametrize("room", [True, False])
def test_a_source_needs_memory(room: bool) -> None:
    stage = Stage()
    socket = Socket(stage)
    if not room:
        stage.hub.broker.charge(2 * EngineLimits().max_total_bytes)
    assert bool(socket.hear("a:1", "connect one")) is room
