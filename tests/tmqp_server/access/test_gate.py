"""The gate: what each operation needs, how its refusal is told, what waits, which answers hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.guarded import QUEUE, GuardedWorld, asks, event, frame, stage
from tests.tmqp_server.outputs import questions
from tests.tmqp_server.peers import Peer, ack, greeting, operation, push
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp_server.access import needs, rights
from tmqp_server.access.gate import (
    ALLOWED,
    ASK,
    MAX_KEPT_ANSWERS,
    REFUSED,
    Gate,
    Question,
    Verdict,
)
from tmqp_server.access.needs import needed
from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine import commands
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Batch,
    Command,
    Connect,
    CreateChannel,
    CreateQueue,
    Join,
    ListCommand,
    ListNodes,
    Push,
    SessionCommand,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.effects import Accept, Confirm, Effect, Reply
from tmqp_server.engine.events import CHANNEL_CREATED, MESSAGE_PRODUCED
from tmqp_server.engine.options import NOWHERE, ChannelChanges, QueueChanges
from tmqp_server.hub.hub import Hub

YES = Verdict(True)
NO = Verdict(False)


def session_commands() -> Iterator[type[Command]]:
    for kind in vars(commands).values():
        if isinstance(kind, type) and issubclass(kind, SessionCommand):
            yield kind


def test_whatever_a_session_can_ask_of_the_engine_somebody_has_decided_who_may() -> None:
    decided = {*needs.NEEDS, *needs.FREE, Batch, ListCommand, SessionCommand}
    decided |= {commands.GroupCommand, commands.CursorCommand, commands.CellCommand}
    decided |= {commands.Permission, commands.SurveyCommand, commands.ClientRun}
    assert set(session_commands()) <= decided
    assert set(Broker()._performers) <= decided


def test_what_nobody_has_decided_is_refused_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(needs.NEEDS, ListNodes)
    gate = Gate(lambda _: False)
    gate.open(1)
    command = ListNodes(1, "r")
    assert needed(command) is None
    assert gate.check(1, command, 0.0) == REFUSED
    assert repr(gate.refusal(command)) == repr([Reply(1, "r", 401)])
    assert gate.refusal(ListNodes(1, None)) == []
    assert (gate.refused, gate.dropped) == (2, 1)


# --- What needs no right -------------------------------------------------------------------------


def test_giving_up_and_answering_deliveries_is_always_allowed() -> None:
    world, me, _ = stage()
    me.ask(Operation.JOIN, "c")
    me.say(event("ChannelCreated"))
    (delivery,) = [each for each in me.take() if each.type == MessageType.QUEUE_MESSAGE] or [
        push("c", 1, "stored")
    ]
    world.policy = lambda _: NO
    world.asked.clear()
    me.say(ack(delivery))
    me.say(frame(MessageType.ACKNOWLEDGE, "nobody", 0))
    assert me.ask(Operation.LEAVE, "c").content_type == 0
    me.say(frame(MessageType.EVENT, "ChannelCreated", 0))
    assert me.take()[-1].content_type == 0
    assert world.asked == []


def test_a_copy_is_asked_about_and_left_out_in_silence() -> None:
    """F82: nobody waits for copies."""
    world, me, _ = stage()
    world.policy = lambda question: Verdict(question.subject == "c")
    me.say(push("c", 1, "m", headers=[("CC", "secret;3"), ("CC", "c;5")], pending_acknowledge=True))
    assert [(each.subject, each.queue_id) for each in world.asked] == [
        ("c", 1),
        ("secret", 3),
        ("c", 5),
    ]
    assert {(q.channel_name, q.queue_id) for q in world.broker.queues()} == {("c", 1), ("c", 5)}
    assert all(each.type == MessageType.ACKNOWLEDGE for each in me.take())


def test_events_are_asked_about_one_by_one() -> None:
    world, me, _ = stage()
    me.say(event("ChannelCreated"))
    me.say(event("MessageProduced", ("Channel-Name", "c"), ("Queue-Id", "1")))
    assert [each.event for each in world.asked] == [CHANNEL_CREATED, MESSAGE_PRODUCED]


def test_a_list_shows_what_may_be_seen() -> None:
    """F52: the rest is left out, and so is what was not asked about."""
    world, me, _ = stage()
    for name in ("a", "b"):
        me.ask(Operation.CREATE_CHANNEL, name)
    world.policy = lambda question: Verdict(
        True, 60.0, names=frozenset(question.names) - {"b"} | {"elsewhere"}
    )
    for names in (["c", "a"], ["a"]):
        pattern = "" if len(names) == 2 else "a"
        seen = json.loads(me.ask(Operation.CHANNEL_LIST, pattern).payload)
        assert [each["Name"] for each in seen] == names
    assert world.asked[-1].names == ("a",), "each list is a question of its own"
    me.say(operation(Operation.CHANNEL_LIST, message_id=""))
    assert me.take() == []


def test_a_node_is_asked_nothing_once_it_is_in() -> None:
    world = GuardedWorld(lambda _: NO)

    def as_node(question: Question) -> Verdict:
        assert isinstance(question.command, Connect)
        question.command.node = True
        return Verdict(True, connect=question.command)

    world.connecting = as_node
    node = Peer(world, "node")
    assert node.ask(Operation.JOIN, "c").content_type == 0
    node.say(push("c", 1, "m"))
    assert node.take()[-1].type == MessageType.QUEUE_MESSAGE
    assert world.asked == []


# --- Connecting ----------------------------------------------------------------------------------


def test_a_refused_client_hears_401_and_the_end() -> None:
    """F33, and nothing that it sent ahead has happened."""
    world = GuardedWorld()
    world.connecting = lambda _: NO
    peer = Peer(world)
    peer.say(greeting("x"), operation(Operation.CREATE_CHANNEL, "c"))
    (answer,) = peer.take()
    assert (answer.type, answer.content_type, answer.target) == (MessageType.SERVER, 401, "")
    assert answer.first_acquirer
    assert not peer.open
    assert world.asked == []
    assert world.broker.statistics().sessions == 0


def test_a_client_gets_the_name_it_is_given() -> None:
    world = GuardedWorld()

    def rename(question: Question) -> Verdict:
        connect = question.command
        assert isinstance(connect, Connect)
        assert connect.client_id == "x"
        connect = Connect(
            connect.session, connect.request, "y", "n", "t", connect.door, None, authenticated=True
        )
        return Verdict(True, connect=connect)

    world.connecting = rename
    peer = Peer(world)
    peer.say(greeting("x"))
    assert [each.target for each in peer.take()] == ["y"]
    (entry,) = json.loads(peer.ask(Operation.CLIENT_LIST).payload)
    assert (entry["Id"], entry["Name"], entry["Type"]) == ("y", "n", "t")
    assert entry["IsAuthenticated"] is True


def test_what_is_sent_before_the_decision_waits_for_it() -> None:
    world = GuardedWorld()
    world.connecting = lambda _: None
    peer = Peer(world)
    peer.say(greeting("x"), operation(Operation.JOIN, "c", message_id="early"))
    peer.say(operation(Operation.JOIN, "c", message_id="later"))
    assert peer.take() == []
    connect = world.held[0].command
    assert isinstance(connect, Connect)
    world.decide(Verdict(True, connect=connect))
    assert [each.message_id for each in peer.take()][1:] == ["early", "later"]


def test_a_client_that_does_not_wait_for_the_decision_is_not_connected() -> None:
    world = GuardedWorld()
    world.connecting = lambda _: None
    peer = Peer(world)
    peer.say(greeting("x"))
    world.advance_to(11.0)  # the handshake has a limit of its own
    assert not peer.open
    connect = world.held[0].command
    assert isinstance(connect, Connect)
    world.decide(Verdict(True, connect=connect))
    assert world.broker.statistics().sessions == 0


# --- Waiting -------------------------------------------------------------------------------------


def hold_pushes(question: Question) -> Verdict | None:
    return None if question.right == rights.PUSH else YES


def test_the_order_of_a_sessions_commands_is_kept() -> None:
    world, me, other = stage()
    world.policy = hold_pushes
    me.say(
        push("d", 1, "first"),
        asks(Operation.CREATE_CHANNEL, "e"),
        push("d", 1, "second"),
        asks(Operation.QUEUE_INFORMATION, "d", b"\1\0"),
    )
    me.say(asks(Operation.JOIN, "d"))
    assert me.take() == []
    assert len(world.held) == 1, "one question a session at a time"
    # Others go on.
    assert other.ask(Operation.CREATE_CHANNEL, "f").content_type == 0
    world.decide(YES)
    assert [each.content_type for each in me.take()] == [0]  # the channel e
    world.decide(NO)
    refused, information, delivery, joined = me.take()
    assert (refused.content_type, refused.message_id) == (401, "second")
    assert json.loads(information.payload)["Messages"] == 1
    assert (delivery.message_id, joined.content_type) == ("first", 0)


def test_the_end_of_a_connection_does_not_wait() -> None:
    world, me, _ = stage()
    world.policy = hold_pushes
    me.say(push("d", 1, "m"), asks(Operation.CREATE_CHANNEL, "e"))
    me.link.close()
    assert world.broker.statistics().sessions == 1
    (question,) = world.held
    world.hub.decide(question.session, question.ticket, YES, world.now)
    assert world.hub.go_on(question.session, world.now) is False
    assert {q.channel_name for q in world.broker.queues()} == {"c"}
    assert not world.hub._open
    assert not world.hub._rest


def test_a_late_or_wrong_decision_is_nothing() -> None:
    world, me, _ = stage()
    world.policy = hold_pushes
    me.say(push("d", 1, "m"))
    (question,) = world.held
    world.hub.decide(question.session, question.ticket + 1, YES, world.now)
    assert world.hub.is_waiting(question.session)
    world.decide(YES)
    world.hub.decide(question.session, question.ticket, YES, world.now)
    assert [queue.count for queue in world.broker.queues() if queue.channel_name == "d"] == [1]


def test_custom_messages_are_taken_one_at_a_time_and_in_order() -> None:
    world, me, _ = stage()
    me.say(
        frame(0x00, "t", 1),
        asks(Operation.CREATE_CHANNEL, "e"),
        frame(0x00, "t", 2),
        frame(0x00, "t", 3),
    )
    handed = [each.handed_over for each in world.handed_over]
    frames = [each.wire for each in handed if each is not None]
    assert [each.content_type for each in frames if isinstance(each, Frame)] == [1, 2, 3]
    assert all(each is not None and each.client.client_id == "me" for each in handed)
    assert [each.content_type for each in me.take()] == [0]


def test_custom_messages_nobody_takes_are_counted() -> None:
    """F17: they are ignored, and the connection stays."""
    world = GuardedWorld()
    me = Peer(world, "me")
    me.say(frame(0x00, "t", 1, pending_response=True))
    assert me.take() == []
    assert me.open
    assert world.hub.customs_ignored == 1


# --- Answers that hold ---------------------------------------------------------------------------


def test_an_answer_holds_for_its_time_for_its_session_and_its_question() -> None:
    world, me, other = stage()
    world.policy = lambda question: Verdict(question.queue_id == 1, keep_s=10.0)
    for _ in range(3):
        me.say(push("c", 1, "m"))
        me.say(push("c", 2, "m"))
    assert [each.queue_id for each in world.asked] == [1, 2]
    assert [each.content_type for each in me.take()] == [401] * 3
    other.say(push("c", 1, "m"))
    me.say(asks(Operation.CLEAR_MESSAGES, "c", headers=QUEUE))
    assert len(world.asked) == 4
    world.now += 9.9
    me.say(push("c", 1, "m"))
    assert len(world.asked) == 4
    world.now += 0.2
    me.say(push("c", 1, "m"))
    assert len(world.asked) == 5


def test_answers_can_be_forgotten_for_one_session_or_for_all() -> None:
    world, me, other = stage()
    world.policy = lambda _: Verdict(True, keep_s=1e9)
    gate = world.hub.gate
    assert gate is not None
    for forgotten, asked in ((None, 2), (me.link.number, 4), (99, 5), (None, 5)):
        me.say(push("c", 1, "m"))
        other.say(push("c", 1, "m"))
        assert len(world.asked) == asked
        gate.forget_answers(forgotten)


def test_no_more_answers_are_kept_than_the_bound() -> None:
    world, me, _ = stage()
    world.policy = lambda _: Verdict(True, keep_s=1e9)
    for number in range(MAX_KEPT_ANSWERS + 5):
        me.say(push("c", number + 1, "m"))
    gate = world.hub.gate
    assert gate is not None
    kept = gate._kept[me.link.number]
    assert kept is not None
    assert len(kept) == MAX_KEPT_ANSWERS
    asked = len(world.asked)
    me.say(push("c", 1, "m"))  # the oldest went
    assert len(world.asked) == asked + 1


# --- Batches -------------------------------------------------------------------------------------


def batch_of(*channels: str) -> Batch:
    pushes: list[Command] = [
        Push(1, f"m{n}", name, 1, False, True, 1, None) for n, name in enumerate(channels)
    ]
    return Batch(1, "batch", pushes)


class Sink(DoorSession):
    """A door session that only remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Effect] = []
        self.next: list[Command] = []

    def receive(self, data: bytes, now: float) -> list[Command]:
        commands, self.next = self.next, []
        return commands

    def receive_eof(self, now: float) -> list[Command]:
        return []

    def apply(self, effect: Effect, now: float) -> list[Command]:
        self.said.append(effect)
        return []

    def deliver(self, data: bytes) -> None:
        raise AssertionError("nobody has joined")

    def close(self, reason: str, now: float) -> list[Command]:
        return []

    def data_to_send(self) -> bytes:
        return b""

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[Command]:
        return []


class SinkDoor(Door):
    """Opens sinks."""

    name = "sink"

    def __init__(self) -> None:
        self.sink = Sink()

    def open(self, session: int, now: float) -> Sink:
        return self.sink


def guarded_hub() -> tuple[Hub, Sink]:
    """A hub with one connected session, whose commands the test chooses."""
    hub = Hub(Broker(), guarded=True)
    door = SinkDoor()
    hub.open(1, door, 0.0)
    door.sink.next = [Connect(1, None, "me")]
    hub.receive(1, b"x", 0.0)
    (question,) = questions(hub)
    assert isinstance(question.command, Connect)
    hub.decide(1, question.ticket, Verdict(True, connect=question.command), 0.0)
    assert [type(each) for each in door.sink.said] == [Accept]
    door.sink.said.clear()
    return hub, door.sink


def run(hub: Hub, sink: Sink, allowed: set[str], *commands: Command, keep_s: float = 0.0) -> int:
    """Give commands and answer all questions; how many there were."""
    sink.next = list(commands)
    more = hub.receive(1, b"x", 1.0)
    asked = 0
    while more:
        for question in questions(hub):
            asked += 1
            hub.decide(1, question.ticket, Verdict(question.subject in allowed, keep_s), 1.0)
        more = hub.go_on(1, 1.0)
    return asked


@pytest.mark.parametrize("keep_s", [0.0, 60.0])
def test_a_batch_is_applied_as_a_whole_or_not_at_all(keep_s: float) -> None:
    hub, sink = guarded_hub()
    assert run(hub, sink, {"a", "b"}, batch_of("a", "b", "a"), keep_s=keep_s) == (
        2 if keep_s else 3
    )
    assert repr(sink.said[-1]) == repr(Reply(1, "batch", 0))
    assert [type(each) for each in sink.said[:-1]] == [Confirm] * 3
    sink.said.clear()
    count = hub.broker.statistics().messages
    assert run(hub, sink, {"a"}, batch_of("a", "c", "a"), keep_s=keep_s) == (1 if keep_s else 2)
    assert repr(sink.said) == repr([Reply(1, "batch", 401)])
    assert hub.broker.statistics().messages == count
    # What no batch may hold is the engine's to refuse.
    sink.said.clear()
    assert run(hub, sink, set(), Batch(1, "batch", [Join(1, None, "x")])) == 0
    assert repr(sink.said) == repr([Reply(1, "batch", 406)])


@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), max_size=6),
    st.sets(st.sampled_from("abcd")),
    st.sampled_from([0.0, 60.0]),
)
def test_what_is_applied_is_what_is_allowed_whatever_is_kept(
    groups: list[list[str]], allowed: set[str], keep_s: float
) -> None:
    """Single pushes and batches, mixed: exactly the allowed ones arrive, in order."""
    hub, sink = guarded_hub()
    given_commands: list[Command] = []
    expected: list[str] = []
    for place, group in enumerate(groups):
        if len(group) == 1:
            given_commands.append(Push(1, f"m{place}", group[0], 1, False, False, 1, f"{place}"))
            expected += group if group[0] in allowed else []
        else:
            given_commands.append(batch_of(*group))
            expected += group if set(group) <= allowed else []
    asked = run(hub, sink, allowed, *given_commands, keep_s=keep_s)
    arrived = {queue.channel_name: queue.count for queue in hub.broker.queues()}
    assert arrived == {name: expected.count(name) for name in expected}
    if keep_s:
        assert asked <= 4
    refused = [each for each in sink.said if isinstance(each, Reply) and each.code == 401]
    unwanted = [group for group in groups if not set(group) <= allowed]
    assert len(refused) == len(unwanted)


def test_the_gate_says_what_it_says_in_one_look_up() -> None:
    gate = Gate(lambda _: False)
    gate.open(1)
    command = Push(1, "m", "c", 1, False, False, 1, None)
    assert gate.check(1, command, 0.0) == ASK
    question = gate.question(1, command, 0.0)
    assert gate.decided(question, Verdict(True, keep_s=5.0), 0.0) == ALLOWED
    assert gate.check(1, command, 4.9) == ALLOWED
    assert gate.check(1, command, 5.0) == ASK
    assert gate.decided(question, Verdict(False, keep_s=5.0), 5.0) == REFUSED
    assert gate.check(1, command, 9.0) == REFUSED
    gate.close(1)
    assert "push" in repr(question)


def test_what_stands_before_the_end_of_a_connection_is_worked_off() -> None:
    """A client that pushes and says good-bye has pushed."""
    world, me, _ = stage()
    world.policy = hold_pushes
    me.say(push("d", 1, "m"), Frame.build(MessageType.TERMINATE))
    number = me.link.number
    assert not me.open
    assert world.hub.has_more(number), "there is a reason not to cut it off"
    world.decide(YES)
    assert [queue.count for queue in world.broker.queues() if queue.channel_name == "d"] == [1]
    assert not world.hub.has_more(number)
    assert world.broker.statistics().sessions == 1


def test_what_waits_when_this_side_closes_is_dropped() -> None:
    world, me, _ = stage()
    world.policy = hold_pushes
    me.say(push("d", 1, "m"), push("d", 1, "n"))
    world.hub.close(me.link.number, "the server stops", world.now)
    assert not world.hub.has_more(me.link.number)
    world.decide(YES)
    assert {queue.channel_name for queue in world.broker.queues()} == {"c"}


# --- Dead letters, which the server writes -------------------------------------------------------

_INTO = QueueChanges(dead_letter=("graves", 7))
_DEFAULTS = ChannelChanges(queue=_INTO)
#: Every command that can name a queue of dead letters.
_NAMING: tuple[Command, ...] = (
    CreateChannel(1, "r", "mine", _DEFAULTS),
    UpdateChannel(1, "r", "mine", _DEFAULTS),
    CreateQueue(1, "r", "mine", 2, _INTO),
    CreateQueue(1, "r", "mine", 3, None, _DEFAULTS),
    UpdateQueue(1, "r", "mine", 1, _INTO),
)


@pytest.mark.parametrize("command", _NAMING, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("keep_s", [0.0, 60.0])
def test_nobody_lets_the_server_write_where_he_may_not_push(
    command: Command, keep_s: float
) -> None:
    hub, sink = guarded_hub()
    run(hub, sink, {"mine"}, Push(1, "m", "mine", 1, False, False, 1, "wire"))
    sink.said.clear()
    assert run(hub, sink, {"mine"}, command, keep_s=keep_s) == 2
    assert repr(sink.said) == repr([Reply(1, "r", 401)])
    assert [queue.options.dead_letter for queue in hub.broker.queues()] == [None]
    hub, sink = guarded_hub()
    run(hub, sink, {"mine", "graves"}, command, keep_s=keep_s)
    (answer,) = sink.said
    assert isinstance(answer, Reply)
    assert answer.code != 401


@pytest.mark.cold  # compiled code has no signatures
def test_every_command_with_options_of_queues_is_asked_about_their_dead_letters() -> None:
    named = {type(each) for each in _NAMING}
    with_options = {
        kind
        for kind in session_commands()
        if kind.__module__.endswith("topology")
        and any("Changes" in str(hint) for hint in get_type_hints(kind.__init__).values())
    }
    assert with_options == named


@pytest.mark.parametrize("missing", ["mine", "theirs"])
def test_a_queue_to_be_fed_needs_the_right_to_feed_it(missing: str) -> None:
    hub, sink = guarded_hub()
    run(hub, sink, {"mine", "theirs"}, CreateQueue(1, "r", "theirs", 1))
    sink.said.clear()
    command = CreateQueue(1, "r", "mine", 1, source=("theirs", 1))
    run(hub, sink, {"mine", "theirs"} - {missing}, command)
    assert repr(sink.said) == repr([Reply(1, "r", 401)])
    assert [each.channel_name for each in hub.broker.queues()] == ["theirs"]
    sink.said.clear()
    run(hub, sink, {"mine", "theirs"}, command)
    assert repr(sink.said) == repr([Reply(1, "r", 0)])


def test_giving_up_dead_letters_needs_no_more_than_changing_the_queue() -> None:
    command = UpdateQueue(1, "r", "mine", 1, QueueChanges(dead_letter=NOWHERE))
    assert needs.all_needs(command) == [needed(command)]
