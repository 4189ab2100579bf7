"""A link to a master, input by input in every state; its outbox; how long it waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp.backoff import Backoff
from tmqp.connection import Connection
from tmqp.constants import MessageType
from tmqp.events import HandshakeReceived
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp.models import NodeDecision
from tmqp.state import Role
from tmqp_server.cluster.link import LinkState, MasterLink
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.engine.commands import ApplyDecision, Command, ReportMaster

WHO = ConnectionInformation("slave", "slave", "server", "token")
LIMITS = Limits(handshake_timeout_s=3.0, ping_interval_s=10.0)
MESSAGE = Frame.build(MessageType.QUEUE_MESSAGE, "c", 1, b"x", message_id="m").raw
DECISION = Frame.build(
    MessageType.SERVER,
    "c",
    641,
    NodeDecision(channel="c", queue=1, message_id="m", acknowledged=False).to_json(),
).raw


#: No preamble, and no message that anybody would wait for.
ENDLESS = bytes([0x11, 0x10, 0, 0, 0, 0, 0, 255]) + b"\xff" * 8


class Master:
    """The other side, as far as a test needs it."""

    def __init__(self, link: MasterLink) -> None:
        self.link = link
        self.connection = Connection(Role.SERVER, LIMITS)
        self.seen: list[object] = []

    def hear(self) -> None:
        data = self.link.take(1 << 20)
        self.link.note_written(len(data))
        self.seen += self.connection.receive(data, 0.0)

    def answer(self, now: float = 0.0) -> list[Command]:
        return self.link.receive(self.connection.data_to_send(), now)


def told(commands: list[Command]) -> list[str]:
    """What a link wants to be done, in words."""
    words = []
    for command in commands:
        if isinstance(command, ReportMaster):
            assert command.host == "host"
            words.append(f"ReportMaster {command.node_id} {command.connected}")
        else:
            assert isinstance(command, ApplyDecision)
            place = f"{command.channel}/{command.queue_id}"
            words.append(f"ApplyDecision {place} {command.message_id} {command.positive}")
    return words


def new_link(chance: float = 1.0, heeds: bool = True) -> MasterLink:
    outbox = Outbox(1_000)
    return MasterLink(
        "m", "host", WHO, LIMITS, Backoff(1.0, 8.0), outbox, lambda: chance, heeds, 0.0
    )


def in_state(state: LinkState) -> tuple[MasterLink, Master]:
    link = new_link()
    master = Master(link)
    if state in (LinkState.CONNECTING, LinkState.HANDSHAKING, LinkState.UP):
        link.dialling(0.0)
    if state in (LinkState.HANDSHAKING, LinkState.UP):
        link.opened(0.0)
        master.hear()
    if state == LinkState.UP:
        master.connection.accept("slave")
        assert told(master.answer()) == ["ReportMaster m True"]
    if state == LinkState.CLOSED:
        link.close(0.0)
    assert link.state == state
    return link, master


def fail(link: MasterLink, _master: Master) -> list[Command]:
    link.failed("nobody there", 1.0)
    return []


Step = Callable[[MasterLink, Master], list[Command]]

INPUTS: dict[str, Step] = {
    "failed": fail,
    "lost": lambda link, _: link.lost("reset", 1.0),
    "end": lambda link, _: link.lost("", 1.0),
    "silence": lambda link, _: link.on_deadline(3.0),
    "nonsense": lambda link, _: link.receive(ENDLESS, 1.0),
    "close": lambda link, _: link.close(1.0),
}
W, C, H, U, X = LinkState
#: Where each input leads from WAITING, CONNECTING, HANDSHAKING, UP, CLOSED.
TABLE: dict[str, tuple[LinkState, ...]] = {
    "failed": (W, W, H, U, X),
    "lost": (W, C, W, W, X),
    "end": (W, C, W, W, X),
    "silence": (W, C, W, U, X),
    "nonsense": (W, C, W, W, X),
    "close": (X, X, X, X, X),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("state", LinkState)
def test_every_input_in_every_state(name: str, state: LinkState) -> None:
    link, master = in_state(state)
    commands = INPUTS[name](link, master)
    assert link.state == TABLE[name][state]
    lost = state == LinkState.UP and link.state != LinkState.UP
    assert told(commands) == ["ReportMaster m False"] * lost
    if link.state == W and state != W:
        assert link.failures == 1
        assert link.problem
        due = link.next_deadline()
        assert due is not None
        assert due > 0.0
    link.offer(MESSAGE)
    assert len(link.outbox) == (link.state != X)


def test_it_introduces_this_server_and_then_passes_on() -> None:
    link, master = in_state(LinkState.HANDSHAKING)
    link.offer(MESSAGE)
    master.hear()
    (hello,) = [event for event in master.seen if isinstance(event, HandshakeReceived)]
    who = hello.information
    assert (who.client_id, who.name, who.type, who.token) == ("slave", "slave", "server", "token")
    assert len(link.outbox) == 1, "nothing is passed on before the master has accepted"
    master.connection.accept("slave")
    master.answer()
    assert len(link.outbox) == 1
    master.hear()
    assert link.outbox.written == 1
    assert len(link.outbox) == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (401, "does not take this token"),
        (409, "has the name of this server"),
        (482, "too many connections"),
        (503, "another client has this server's name"),
        (500, "code 500"),
    ],
)
def test_a_refusal_says_why(code: int, words: str) -> None:
    link, master = in_state(LinkState.HANDSHAKING)
    master.connection.refuse(code)
    assert master.answer() == []
    assert words in link.problem
    assert link.state == LinkState.WAITING


def test_decisions_of_the_master_are_handed_on() -> None:
    link, _ = in_state(LinkState.UP)
    assert told(link.receive(DECISION, 1.0)) == ["ApplyDecision c/1 m False"]
    bad = Frame.build(MessageType.SERVER, "c", 641, b"nonsense").raw
    assert link.receive(bad, 1.0) == []
    assert link.receive(MESSAGE, 1.0) == []
    assert link.ignored == 2
    assert link.state == LinkState.UP


def test_decisions_are_ignored_where_they_are_not_shared() -> None:
    link = new_link(heeds=False)
    link.dialling(0.0)
    link.opened(0.0)
    master = Master(link)
    master.hear()
    master.connection.accept("slave")
    master.answer()
    assert link.receive(DECISION, 1.0) == []
    assert link.ignored == 1


def test_it_pings_and_gives_a_dead_master_up() -> None:
    link, master = in_state(LinkState.UP)
    assert link.next_deadline() == 10.0
    assert link.on_deadline(10.0) == []
    master.hear()
    assert "PingReceived" in repr(master.seen[-1])
    assert told(link.on_deadline(20.0)) == ["ReportMaster m False"]
    assert "nothing received" in link.problem


def test_every_wait_is_twice_the_one_before_up_to_a_bound() -> None:
    link = new_link()
    now, waits = 0.0, []
    for _ in range(6):
        link.dialling(now)
        link.failed("no", now)
        due = link.next_deadline()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def test_only_a_steady_connection_ends_the_count() -> None:
    for stood_s, failures in ((1.0, 4), (6.0, 1)):
        link, master = in_state(LinkState.HANDSHAKING)
        link.failures = 3
        master.connection.accept("slave")
        master.answer()
        link.lost("reset", stood_s)
        assert link.failures == failures


@given(st.integers(1, 10_000), st.floats(0.0, 1.0, exclude_max=True))
def test_waits_are_within_their_bounds(failures: int, chance: float) -> None:
    wait = Backoff(0.5, 30.0).delay_s(failures, chance)
    assert 0.25 <= wait <= 30.0


def test_goodbye_is_said_once_and_nothing_else() -> None:
    link, master = in_state(LinkState.UP)
    link.offer(MESSAGE)
    link.close(1.0)
    master.hear()
    assert "TerminateReceived" in repr(master.seen)
    assert "QueueMessage" not in repr(master.seen)


# --- The outbox ----------------------------------------------------------------------------------


def test_what_was_not_written_as_a_whole_is_written_again() -> None:
    outbox = Outbox(100)
    for text in (b"aaaa", b"bbbb", b"cccc"):
        outbox.put(text)
    assert outbox.take(8) == b"aaaabbbb"
    assert outbox.take(8) == b"", "first this must be out"
    outbox.note_written(3)
    outbox.note_written(2)
    outbox.give_back()
    assert outbox.written == 1
    assert outbox.take(100) == b"bbbbcccc"
    outbox.note_written(8)
    assert (outbox.written, len(outbox), outbox.waiting_bytes) == (3, 0, 0)


def test_a_message_larger_than_all_there_may_be_is_given_up() -> None:
    outbox = Outbox(10)
    outbox.put(b"small")
    outbox.put(b"x" * 11)
    assert (outbox.dropped, len(outbox)) == (1, 1)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 12)),
            st.tuples(st.just("take"), st.integers(1, 20)),
            st.tuples(st.just("write"), st.integers(0, 20)),
            st.tuples(st.just("break"), st.just(0)),
        ),
        max_size=60,
    )
)
def test_every_message_is_written_in_order_or_given_up_and_never_twice(
    steps: list[tuple[str, int]],
) -> None:
    outbox = Outbox(30)
    put: list[int] = []
    unsent = b""
    whole: list[int] = []
    partial = b""
    for what, number in steps:
        if what == "put":
            put.append(len(put))
            outbox.put(bytes([len(put) - 1]) * number)
        elif what == "take":
            unsent = unsent or outbox.take(number)
        elif what == "write":
            partial += unsent[:number]
            outbox.note_written(len(unsent[:number]))
            unsent = unsent[number:]
        else:
            outbox.give_back()
            unsent = partial = b""
        if what == "write":
            done = outbox.written - len(whole)
            for _ in range(done):
                mark = partial[0]
                whole.append(mark)
                size = len(partial) - len(partial.lstrip(bytes([mark])))
                partial = partial[size:]
        assert outbox.waiting_bytes <= 30
        assert len(whole) + outbox.dropped + len(outbox) == len(put)
    assert whole == sorted(set(whole))
