"""The connections to masters: dials, pieces, patience, goodbyes, log lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.shell.stage import marks
from tmqp.backoff import Backoff
from tmqp.codec import FrameDecoder
from tmqp.connection import Connection
from tmqp.constants import PREAMBLE, MessageType
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp.models import NodeDecision
from tmqp.state import Role
from tmqp_server.cluster.filters import KINDS, PatternFilter
from tmqp_server.cluster.link import LinkState, MasterLink
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import ClusterRelay
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, ReportMaster
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.links import Links
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import (
    ERROR,
    INFO,
    WARNING,
    Dial,
    HangUp,
    LinkOutput,
    Log,
    Wake,
    WorldEffect,
)

LIMITS: Final = Limits(handshake_timeout_s=3.0, ping_interval_s=60.0)
WHO: Final = ConnectionInformation("slave", "slave", "server", "token")
STALL_S: Final = 10.0
FLUSH_S: Final = 2.0
#: No message that anybody would wait for.
ENDLESS: Final = bytes([0x11, 0x10, 0, 0, 0, 0, 0, 255]) + b"\xff" * 8
CONNECT_S: Final = 5.0


def new_link(name: str = "m", buffer_bytes: int = 100_000, *, heeds: bool = False) -> MasterLink:
    """A link that waits 1, 2, 4, 8 seconds between its tries."""
    outbox = Outbox(buffer_bytes)
    return MasterLink(name, "host", WHO, LIMITS, Backoff(1.0, 8.0), outbox, lambda: 1.0, heeds, 0.0)


def message(number: int, size: int = 10) -> bytes:
    frame = Frame.build(MessageType.QUEUE_MESSAGE, "c", 1, b"x" * size, message_id=f"m{number}")
    return frame.raw


class Stage:
    """Links without a turn: the test is the network, the masters and the clock."""

    def __init__(self, *links: MasterLink) -> None:
        self.world: list[WorldEffect] = []
        self.link = links[0]
        self.links = Links(self.world, links, marks(stall_s=STALL_S, flush_s=FLUSH_S), CONNECT_S)
        self.now = 0.0
        self.commands: list[Command] = []
        self.dials: list[Dial] = []
        self.hung_up: list[Dial] = []
        self.writing: list[Dial] = []
        self.logs: list[str] = []
        self.levels: list[int] = []
        #: What each connection was sent.
        self.sent: dict[Dial, bytes] = {}

    def attend(self) -> None:
        """As a turn does: have written what there is, and carry effects out."""
        self.links.feed(self.now)
        effects, self.world[:] = self.world[:], []
        for effect in effects:
            if isinstance(effect, Dial):
                self.dials.append(effect)
            elif isinstance(effect, HangUp):
                self.hung_up.append(effect.dial)
            elif isinstance(effect, LinkOutput):
                self.writing.append(effect.dial)
            elif isinstance(effect, Log):
                assert effect.topic == "cluster"
                self.logs.append(effect.text)
                self.levels.append(effect.level)

    def pass_time(self, seconds: float) -> None:
        """So much later, with all that is due on the way."""
        until = self.now + seconds
        while (due := self.links.due()) <= until:
            self.now = max(self.now, due)
            self.commands += self.links.on_deadline(self.now)
            self.attend()
        self.now = until

    @property
    def dial(self) -> Dial:
        """The last."""
        return self.dials[-1]

    def connect(self) -> Connection:
        """Answer the last dial; returns the master's side, which has accepted."""
        self.links.dialled(self.dial, self.now)
        self.attend()
        master = Connection(Role.SERVER, LIMITS, now=self.now)
        master.receive(self.write(), self.now)
        master.accept("slave")
        self.say(master)
        return master

    def say(self, master: Connection) -> None:
        """The master's bytes arrive."""
        self.commands += self.links.read(self.dial, master.data_to_send(), self.now)
        self.attend()

    def write(self, most: int = 1_000_000) -> bytes:
        """The network takes up to so many bytes of what waits; returns them."""
        done = b""
        while len(done) < most and (piece := self.links.piece(self.dial)):
            offset = self.links.offset(self.dial)
            part = piece[offset : offset + most - len(done)]
            done += part
            self.links.taken(self.dial, len(part), self.now)
            self.attend()
        self.sent[self.dial] = self.sent.get(self.dial, b"") + done
        return done

    def fail(self, problem: str = "reset") -> None:
        self.commands += self.links.failed(self.dial, problem, self.now)
        self.attend()

    def close(self) -> None:
        self.commands += self.links.close(self.now)
        self.attend()

    def reports(self) -> list[tuple[str, bool]]:
        """What was told of masters since the last look."""
        found = [(r.node_id, r.connected) for r in self.commands if isinstance(r, ReportMaster)]
        self.commands.clear()
        return found


def connected() -> tuple[Stage, Connection]:
    stage = Stage(new_link())
    stage.pass_time(0.0)
    master = stage.connect()
    assert stage.link.state == LinkState.UP
    stage.reports()
    stage.logs.clear()
    stage.levels.clear()
    stage.sent.clear()
    return stage, master


def ids(data: bytes) -> list[str]:
    """The queue messages that stand whole in what a connection was sent."""
    data = data.removeprefix(PREAMBLE)
    frames = FrameDecoder().feed(data)
    return [frame.message_id for frame in frames if frame.type == MessageType.QUEUE_MESSAGE]


# --- Dialling ------------------------------------------------------------------------------------


def test_all_masters_are_reported_and_dialled_at_once() -> None:
    stage = Stage(new_link("a"), new_link("b"))
    stage.pass_time(0.0)
    assert stage.reports() == [("a", False), ("b", False)]
    assert [dial.link for dial in stage.dials] == [0, 1]
    stage.pass_time(1.0)
    assert stage.reports() == []
    assert len(stage.dials) == 2


def test_without_masters_nothing_is_ever_due() -> None:
    links = Links([], (), marks(), CONNECT_S)
    assert links.due() == math.inf
    assert links.on_deadline(0.0) == links.close(0.0) == []


def test_a_master_that_answers_is_greeted_and_told_of() -> None:
    stage = Stage(new_link())
    stage.pass_time(0.0)
    stage.connect()
    assert stage.reports() == [("m", False), ("m", True)]
    assert (stage.logs, stage.levels) == (["master m: connected"], [INFO])
    assert stage.sent[stage.dial].startswith(PREAMBLE)


def test_a_dial_that_nobody_answers_is_given_up() -> None:
    stage = Stage(new_link())
    stage.pass_time(CONNECT_S - 0.01)
    assert stage.hung_up == []
    stage.pass_time(0.01)
    assert stage.hung_up == stage.dials
    assert stage.logs == ["master m: no connection within 5 seconds; next try in 1.0 seconds"]
    stage.pass_time(1.0)
    assert len(stage.dials) == 2


def test_a_dial_that_fails_is_tried_again_after_ever_longer_waits() -> None:
    stage = Stage(new_link())
    for wait_s in (1.0, 2.0, 4.0, 8.0, 8.0):
        stage.pass_time(0.0)
        stage.fail("Connection refused")
        stage.pass_time(wait_s - 0.001)
        assert len(stage.hung_up) == len(stage.dials)
        stage.pass_time(0.001)
    assert stage.logs[0] == "master m: Connection refused; next try in 1.0 seconds"
    assert set(stage.levels) == {WARNING}
    assert len(stage.dials) == 6
    assert stage.reports() == [("m", False)]


def test_what_is_heard_of_an_earlier_connection_is_nothing() -> None:
    stage = Stage(new_link())
    stage.pass_time(CONNECT_S + 1.0)
    early, dial = stage.dials
    stage.links.dialled(early, stage.now)
    assert stage.link.state.name == "CONNECTING"
    assert stage.links.failed(early, "reset", stage.now) == []
    assert stage.links.read(early, b"TMQP/2.0", stage.now) == []
    assert stage.links.piece(early) == b""
    assert stage.links.offset(early) == 0
    stage.links.taken(early, 1, stage.now)
    stage.attend()
    assert stage.hung_up == [early]
    stage.connect()
    assert stage.dial is dial
    assert stage.link.state == LinkState.UP


# --- Writing -------------------------------------------------------------------------------------


def test_what_waits_is_joined_and_counted_when_it_was_taken() -> None:
    stage, _ = connected()
    for number in range(3):
        stage.link.offer(message(number))
    stage.attend()
    assert stage.writing[-1] is stage.dial
    stage.link.offer(message(3))
    stage.attend()
    assert stage.link.outbox.written == 0
    size = len(message(0))
    assert stage.write(size + 1) == (message(0) + message(1))[: size + 1]
    assert stage.link.outbox.written == 1
    stage.write()
    assert ids(stage.sent[stage.dial]) == ["m0", "m1", "m2", "m3"], "the next piece behind this one"
    assert stage.link.outbox.written == 4


def test_the_writer_is_called_once_for_all_that_comes_while_it_works() -> None:
    stage, _ = connected()
    calls = len(stage.writing)
    for number in range(5):
        stage.link.offer(message(number))
        stage.attend()
    assert len(stage.writing) == calls + 1
    stage.write()
    stage.link.offer(message(5))
    stage.attend()
    assert len(stage.writing) == calls + 2


def test_a_torn_message_is_written_again_to_the_next_connection() -> None:
    stage, _ = connected()
    for number in range(3):
        stage.link.offer(message(number))
    stage.attend()
    stage.write(len(message(0)) + 5)
    stage.fail()
    assert stage.reports() == [("m", False)]
    assert stage.hung_up == stage.dials
    calls = len(stage.writing)
    stage.pass_time(1.0)
    stage.connect()
    assert ids(stage.write()) == ["m1", "m2"]
    assert stage.writing[calls:] == [stage.dial] * 2, "for the greeting, and for the messages"
    assert stage.link.outbox.written == 3


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("offer"), st.integers(0, 3_000)),
            st.tuples(st.just("take"), st.integers(1, 4_000)),
            st.tuples(st.just("break"), st.just(0)),
        ),
        max_size=30,
    )
)
def test_every_message_is_written_whole_once_however_connections_break(
    steps: list[tuple[str, int]],
) -> None:
    stage, _ = connected()
    offered = 0
    for what, size in steps:
        if what == "offer":
            stage.link.offer(message(offered, size))
            offered += 1
            stage.attend()
        elif what == "take":
            stage.write(size)
        else:
            stage.fail()
            stage.pass_time(8.0)
            stage.connect()
    stage.write()
    written = [each for data in stage.sent.values() for each in ids(data)]
    assert written == [f"m{number}" for number in range(offered)]
    assert stage.link.outbox.written == offered


# --- Patience ------------------------------------------------------------------------------------


def test_a_master_that_takes_nothing_for_the_stall_time_is_given_up() -> None:
    stage, _ = connected()
    stage.pass_time(20.0)
    stage.link.offer(message(0))
    stage.attend()
    stage.pass_time(STALL_S - 0.01)
    stage.write(5)
    stage.pass_time(STALL_S - 0.01)
    assert stage.link.state == LinkState.UP, "it took something"
    stage.pass_time(0.01)
    assert stage.hung_up == stage.dials
    assert stage.logs == ["master m: it took nothing for 10 seconds; next try in 1.0 seconds"]
    assert stage.reports() == [("m", False)]


def test_a_master_with_nothing_to_take_is_not_given_up_for_it() -> None:
    stage, _ = connected()
    stage.link.offer(message(0))
    stage.attend()
    stage.write()
    stage.pass_time(3 * STALL_S)
    assert stage.link.state == LinkState.UP


def test_a_silent_master_is_pinged_and_given_up() -> None:
    stage, _ = connected()
    stage.pass_time(60.0)
    assert stage.write(), "a ping"
    stage.pass_time(60.0)
    assert stage.hung_up == stage.dials
    assert "lifeless" in stage.logs[0]
    assert stage.reports() == [("m", False)]


def test_a_master_that_does_not_answer_the_greeting_is_given_up() -> None:
    stage = Stage(new_link())
    stage.pass_time(0.0)
    stage.links.dialled(stage.dial, stage.now)
    stage.attend()
    stage.write()
    stage.pass_time(3.0)
    assert stage.hung_up == stage.dials[:1]
    assert stage.link.failures == 1


# --- The end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", ENDLESS])
def test_a_master_that_ends_or_speaks_nonsense_is_hung_up(data: bytes) -> None:
    stage, _ = connected()
    stage.commands += stage.links.read(stage.dial, data, stage.now)
    stage.attend()
    assert stage.hung_up == stage.dials
    assert stage.logs[0].startswith("master m: the connection ended: ")
    assert stage.reports() == [("m", False)]


def test_a_master_that_refuses_is_hung_up() -> None:
    stage = Stage(new_link())
    stage.pass_time(0.0)
    stage.links.dialled(stage.dial, stage.now)
    stage.attend()
    master = Connection(Role.SERVER, LIMITS)
    master.receive(stage.write(), 0.0)
    master.refuse(401)
    stage.say(master)
    assert stage.hung_up == stage.dials
    assert "it does not take this token; next try" in stage.logs[0]


def test_a_stop_says_goodbye_behind_what_is_half_written() -> None:
    stage, master = connected()
    for number in range(2):
        stage.link.offer(message(number))
    stage.attend()
    stage.write(5)
    stage.link.offer(message(2))
    stage.close()
    assert stage.reports() == [("m", False)]
    assert stage.hung_up == []
    stage.write()
    assert ids(stage.sent[stage.dial]) == ["m0", "m1"], "m2 was not begun"
    events = master.receive(stage.sent[stage.dial], stage.now)
    assert "terminated" in repr(events[-1])
    assert stage.hung_up == stage.dials
    assert stage.links.due() == math.inf
    assert stage.logs == []


def test_a_stop_waits_for_the_flush_time() -> None:
    stage, _ = connected()
    stage.pass_time(20.0)
    stage.close()
    stage.pass_time(FLUSH_S - 0.01)
    assert stage.hung_up == []
    stage.pass_time(0.01)
    assert stage.hung_up == stage.dials
    assert stage.links.due() == math.inf
    assert stage.logs == []


def test_a_stop_ends_a_dial_at_once_and_begins_none() -> None:
    stage = Stage(new_link("a"), new_link("b"))
    stage.pass_time(0.0)
    stage.links.failed(stage.dials[1], "Connection refused", stage.now)
    stage.close()
    assert sorted(dial.link for dial in stage.hung_up) == [0, 1]
    stage.pass_time(100.0)
    assert len(stage.dials) == 2
    stage.links.dialled(stage.dials[0], stage.now)
    assert stage.links.piece(stage.dials[0]) == b""


def test_a_master_that_ends_while_this_server_stops_is_hung_up() -> None:
    stage, _ = connected()
    stage.close()
    stage.links.read(stage.dial, ENDLESS, stage.now)
    stage.attend()
    assert stage.hung_up == [], "the goodbye is not written"
    stage.links.read(stage.dial, b"", stage.now)
    stage.attend()
    assert stage.hung_up == stage.dials
    assert stage.logs == []


# --- Log lines and faults ------------------------------------------------------------------------


def test_messages_given_up_are_told_of_every_ten_seconds_at_most() -> None:
    stage = Stage(new_link(buffer_bytes=100))
    stage.pass_time(0.0)
    stage.fail("Connection refused")
    stage.logs.clear()
    for number in range(10):
        stage.link.offer(message(number, 60))
        stage.attend()
    told = [line for line in stage.logs if "given up" in line]
    assert told == ["master m: 1 messages given up: the buffer is full"]
    stage.pass_time(9.0)
    told = [line for line in stage.logs if "given up" in line]
    assert len(told) == 1
    stage.pass_time(1.0)
    told = [line for line in stage.logs if "given up" in line]
    assert told[1:] == ["master m: 8 messages given up: the buffer is full"]
    stage.pass_time(100.0)
    assert len([line for line in stage.logs if "given up" in line]) == 2


def test_a_fault_in_a_link_ends_its_connection_and_is_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, _ = connected()

    def broken(*_: object) -> list[Command]:
        raise ZeroDivisionError("of the test")

    with monkeypatch.context() as patch:
        patch.setattr(stage.link, "receive", broken)
        stage.commands += stage.links.read(stage.dial, b"x", stage.now)
        stage.attend()
    assert stage.hung_up == stage.dials
    assert stage.levels[0] == ERROR
    assert stage.logs[0] == "the connection to master m failed"
    assert stage.reports() == [("m", False)]
    stage.pass_time(1.0)
    stage.connect()
    with monkeypatch.context() as patch:
        patch.setattr(stage.link, "on_deadline", broken)
        stage.pass_time(60.0)
    assert stage.hung_up == stage.dials[:2]
    stage.pass_time(1.0)
    assert len(stage.dials) == 3


# --- In a turn -----------------------------------------------------------------------------------


def turn_with(link: MasterLink, accept: Sequence[str]) -> Turn:
    relay = ClusterRelay(
        "slave", "token", False, [link], PatternFilter(["*"], KINDS), PatternFilter(accept, KINDS)
    )
    broker = Broker(options=BrokerOptions(shares_decisions=True))
    return Turn(Hub(broker, relay=relay), marks(), masters=[link], connect_timeout_s=CONNECT_S)


@pytest.mark.parametrize(("accept", "applied"), [("*", 1), ("other", 0)])
def test_what_a_master_brings_passes_the_filter(accept: str, applied: int) -> None:
    link = new_link(heeds=True)
    turn = turn_with(link, [accept])
    turn.on_deadline(0.0)
    (dial,) = [effect for effect in turn.take_effects() if isinstance(effect, Dial)]
    turn.link_dialled(dial, 0.0)
    master = Connection(Role.SERVER, LIMITS)
    while piece := turn.links.piece(dial):
        master.receive(piece, 0.0)
        turn.link_taken(dial, len(piece), 0.0)
    master.accept("slave")
    decision = NodeDecision(channel="c", queue=1, message_id="m", acknowledged=True).to_json()
    data = master.data_to_send() + Frame.build(MessageType.SERVER, "c", 641, decision).raw
    turn.link_read(dial, data, 0.0)
    assert link.state == LinkState.UP
    relay = turn.hub.relay
    assert isinstance(relay, ClusterRelay)
    assert (relay.statistics.accepted, relay.statistics.rejected) == (applied, 1 - applied)
    turn.link_failed(dial, "reset", 0.0)
    assert any(isinstance(effect, HangUp) for effect in turn.take_effects())


def test_the_world_is_woken_for_a_link_and_says_goodbye_with_the_clients() -> None:
    link = new_link()
    turn = turn_with(link, ["*"])
    turn.on_deadline(0.0)
    (dial,) = [effect for effect in turn.take_effects() if isinstance(effect, Dial)]
    assert turn.next_deadline() == CONNECT_S
    turn.link_failed(dial, "Connection refused", 0.0)
    effects = turn.take_effects()
    assert any(isinstance(effect, Wake) for effect in effects), "1 s is earlier than 5 s"
    assert turn.next_deadline() == 1.0
    turn.on_deadline(1.0)
    turn.take_effects()
    turn.close_all("the server stops", 1.1)
    assert any(isinstance(effect, HangUp) for effect in turn.take_effects())
    assert turn.links.due() == math.inf
