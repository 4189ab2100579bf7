"""The hub: who gets what in which order, what follows from it, and who pays for a fault."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.tmqp_server.line_door import LineDoor, LineSession
from tests.tmqp_server.outputs import faults, questions, sent, touched
from tests.tmqp_server.peers import Peer, greeting, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp_server.doors.port import Door
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import ApplyDecision, Command, Connect, ListClients, Push
from tmqp_server.engine.effects import Deliver, Effect, Reply, TellNodes
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub


def _hub(
    *names: str,
    portion_bytes: int = 0,
    relay: _Relay | None = None,
    options: BrokerOptions | None = None,
) -> tuple[Hub, list[LineSession], LineDoor]:
    """A hub whose sessions 1, 2 ... are connected under these names."""
    hub = Hub(Broker(options=options), portion_bytes, relay=relay)
    door = LineDoor()
    for number, name in enumerate(names, 1):
        hub.open(number, door, 0.0)
        hub.receive(number, f"connect {name}".encode(), 0.0)
        assert door.sessions[number].words() == ["Accept"]
        door.sessions[number].data_to_send()
    touched(hub)
    return hub, list(door.sessions.values()), door


def test_effects_are_carried_out_in_their_order() -> None:
    hub, (a, b), _ = _hub("a", "b")
    hub.receive(1, b"push c m1; push c m2; join c; push c m3", 0.0)
    # Stored messages come before the answer to the join (F48).
    assert a.words() == ["line:m1", "line:m2", "Reply", "line:m3"]
    hub.receive(2, b"join c; push c m4", 0.0)
    assert a.words() == ["line:m4"]
    assert b.words() == ["Reply", "line:m4"]


def test_sessions_are_touched_once_in_the_order_of_the_first_touch() -> None:
    hub, _, _ = _hub("a", "b", "c")
    for number in (3, 1):
        hub.receive(number, b"join c", 0.0)
    assert list(touched(hub)) == [3, 1]
    assert list(touched(hub)) == []
    hub.receive(2, b"push c m1; push c m2", 0.0)
    assert list(touched(hub)) == [2, 3, 1]


def test_a_message_is_encoded_once_and_shared_by_all_who_get_it() -> None:
    hub, sessions, door = _hub("a", "b", "c", "d")
    for number in (2, 3, 4):
        hub.receive(number, b"join c", 0.0)
    for session in sessions:
        session.said.clear()
    hub.receive(1, b"push c m", 0.0)
    # The first receiver's copy has another flag (F87): it is another effect.
    first, second, third = [session.pieces[0] for session in sessions[1:]]
    assert len(door.encoded) == 2
    assert first == second == third
    assert second is third


def test_each_door_encodes_in_its_own_way() -> None:
    hub = Hub(Broker())
    doors = [LineDoor("x"), LineDoor("y")]
    for number in range(1, 6):
        hub.open(number, doors[number % 2], 0.0)
        hub.receive(number, f"connect n{number}; join c".encode(), 0.0)
        doors[number % 2].sessions[number].said.clear()
    hub.receive(1, b"push c m", 0.0)
    said = [doors[number % 2].sessions[number].words() for number in range(1, 6)]
    assert said == [["y:m"], ["x:m"], ["y:m"], ["x:m"], ["y:m"]]


class _Relay:
    """Keeps what it is shown; answers pushes into the channel *no* with nothing."""

    def __init__(self) -> None:
        self.nodes: tuple[str, ...] = ()
        self.seen: list[str] = []
        self.told: list[str] = []

    def meet(
        self, number: int, door: Door, command: Command, now: float
    ) -> Sequence[Effect] | None:
        data = door.encode_for_node(command)
        self.seen.append(f"{number} {type(command).__name__}{'!' if data else ''}")
        refused = isinstance(command, Push) and command.channel == "no"
        return [Reply(number, None, 401)] if refused else None

    def tell(self, effect: TellNodes) -> tuple[bytes, Sequence[int]]:
        self.told.append(effect.message_id)
        return b"decided", [2, 77]

    def heed(self, command: Command) -> bool:
        return True

    def recognises(self, command: Connect) -> bool:
        return command.client_id in self.nodes

    def forget(self, number: int) -> None:
        self.seen.append(f"{number} gone")

    def take_error(self) -> Exception | None:
        return None


def test_a_relay_sees_every_command_of_a_session_before_the_broker() -> None:
    relay = _Relay()
    hub, (a, b), _ = _hub("a", "b", relay=relay, options=BrokerOptions(shares_decisions=True))
    relay.seen.clear()
    hub.receive(1, b"join c; push c m1; push no m2", 0.0)
    assert a.words() == ["Reply", "line:m1", "Reply"]
    hub.perform(ApplyDecision("c", 0, "m1"), 0.0)
    hub.block(1, 0.0)
    hub.forget(1, 0.0)
    assert relay.seen == ["1 Join", "1 Push!", "1 Push!", "1 gone"]
    assert hub.broker.statistics().decisions_applied == 1
    hub._carry_out([TellNodes("c", 0, "m3", True)], 0.0)
    assert relay.told == ["m3"]
    assert b.words() == ["decided"]
    b.fault = "deliver"
    hub._carry_out([TellNodes("c", 0, "m4", True)], 0.0)
    assert list(faults(hub)) == [2]
    hub.relay = None
    hub._carry_out([TellNodes("c", 0, "m5", True)], 0.0)
    assert relay.told == ["m3", "m4"]


def test_what_follows_from_an_effect_is_done_before_the_next_command() -> None:
    hub, (a,), _ = _hub("a")
    hub.open(2, LineDoor(), 0.0)
    assert hub.receive(2, b"connect b early1 early2", 0.0) is False
    hub.receive(1, b"list", 0.0)
    (reply,) = a.said
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    assert [client.subscriptions for client in reply.body] == [0, 2]


def test_a_session_whose_client_id_is_taken_over_is_closed() -> None:
    hub, (old,), door = _hub("a")
    hub.receive(1, b"join c", 0.0)
    hub.open(2, door, 0.0)
    hub.receive(2, b"takeover a; join c", 0.0)
    assert old.words() == ["Reply", "CloseSession"]
    assert hub.close_reason(1) == "another client took over the client id"
    assert list(touched(hub)) == [1, 2]
    assert hub.broker.statistics().sessions == 1
    # What followed from the closing was processed: a Disconnect for a session already gone.
    assert hub.broker.statistics().stray_commands == 1


def test_a_native_session_that_is_taken_over_says_goodbye() -> None:
    world = World()
    peer = Peer(world, "a", ["c"])
    world.hub.open(99, LineDoor(), world.now)
    world.hub.receive(99, b"takeover a; push c m", world.now)
    assert not peer.open
    assert peer.take() == [Frame.build(MessageType.TERMINATE)]
    assert faults(world.hub) == {}


def test_effects_for_sessions_that_are_gone_are_passed_over() -> None:
    hub, (a,), _ = _hub("a")
    hub._carry_out([Reply(7, None, 0)], 0.0)
    hub.receive(1, b"join c", 0.0)
    (deliver,) = [
        effect
        for effect in hub.broker.step(Push(1, "m", "c", 0, False, False, 1, None), 0.0)
        if isinstance(effect, Deliver)
    ]
    hub._carry_out([Deliver([7, 1], deliver.message, "c", True, False, False, False)], 0.0)
    assert a.words() == ["Reply", "line:m"]


def test_messages_sent_behind_the_hello_are_worked_off_after_the_acceptance() -> None:
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world)
    producer.say(
        greeting("producer"),
        operation(Operation.JOIN, "d", message_id="j"),
        push("c", 1, "m1"),
        push("c", 1, "m2"),
    )
    accepted, joined = producer.take()
    assert (accepted.type, accepted.content_type) == (MessageType.SERVER, 202)
    assert joined.message_id == "j"
    assert [frame.message_id for frame in consumer.take()] == ["m1", "m2"]


class _Chatty(LineSession):
    """Asks again whenever it is answered."""

    rounds = 5_000

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        commands = super().apply(effect, now)
        self.rounds -= 1
        return commands if self.rounds < 0 else [ListClients(1, "again")]


class _ChattyDoor(LineDoor):
    def open(self, session: int, now: float) -> LineSession:
        self.sessions[session] = _Chatty(session, None)
        return self.sessions[session]


def test_a_long_chain_of_answers_and_requests_is_no_recursion() -> None:
    hub = Hub(Broker())
    door = _ChattyDoor()
    hub.open(1, door, 0.0)
    assert not hub.receive(1, b"connect a", 0.0)
    assert door.sessions[1].words() == ["Accept", *["Reply"] * 5_000]
    assert faults(hub) == {}


def test_a_forgotten_session_is_disconnected_and_its_id_is_free() -> None:
    hub, (_, b), door = _hub("a", "b")
    hub.forget(1, 0.0)
    hub.receive(2, b"list", 0.0)
    (reply,) = b.said
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    assert [client.client_id for client in reply.body] == ["b"]
    hub.open(3, door, 0.0)
    hub.receive(3, b"connect a", 0.0)
    assert door.sessions[3].words() == ["Accept"]


def test_numbers_nobody_has_are_harmless() -> None:
    hub, (a,), _ = _hub("a")
    for number in (0, 7):
        assert hub.receive(number, b"bye", 0.0) is False
        assert hub.go_on(number, 0.0) is False
        hub.receive_eof(number, 0.0)
        hub.close(number, "x", 0.0)
        hub.block(number, 0.0)
        hub.unblock(number, 0.0)
        hub.on_session_deadline(number, 0.0)
        hub.forget(number, 0.0)
        assert hub.session_deadline(number) is None
        assert sent(hub, number) == b""
        assert hub.close_reason(number) == ""
    assert list(touched(hub)) == []
    assert a.words() == []
    assert hub.broker.statistics().stray_commands == 0


def test_a_session_is_asked_about_its_deadline_and_told_of_it() -> None:
    hub, (a,), _ = _hub("a")
    a.due = 5.0
    assert hub.session_deadline(1) == 5.0
    hub.on_session_deadline(1, 5.0)
    assert a.deadlines == [5.0]
    assert list(touched(hub)) == [1]


def test_closing_and_the_end_of_the_stream_disconnect() -> None:
    hub, (a, b), _ = _hub("a", "b")
    hub.close(1, "enough", 0.0)
    hub.receive_eof(2, 0.0)
    assert (a.close_reason, b.close_reason) == ("enough", "end")
    assert hub.close_reason(1) == "enough"
    assert list(touched(hub)) == [1, 2]
    assert hub.broker.statistics().sessions == 0


def test_without_storage_a_message_to_be_saved_is_answered_negatively() -> None:
    """Rule 1: nothing is confirmed as saved that is not."""
    world = World()
    peer = Peer(world, "a")
    created = peer.ask(
        Operation.CREATE_QUEUE,
        "c",
        headers=[("Queue-Id", "1"), ("Delivery-Handler", "ack-ifsaved")],
    )
    assert created.content_type == 0
    peer.say(push("c", 1, "m", pending_acknowledge=True))
    (answer,) = peer.take()
    assert answer.type == MessageType.ACKNOWLEDGE
    assert answer.message_id == "m"
    assert answer.headers == [("Nack-Reason", "error")]


# --- Faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["apply", "deliver"])
def test_a_fault_in_one_door_session_is_not_the_producers(where: str) -> None:
    hub, (producer, bad, good), _ = _hub("p", "bad", "good")
    bad.fault = where
    for number in (2, 3):
        hub.receive(number, b"join c", 0.0)
    hub.receive(1, b"push c m1; push c m2; list", 0.0)
    assert producer.words() == ["Reply"]
    assert good.words() == ["Reply", "line:m1", "line:m2"]
    found = faults(hub)
    assert list(found) == [2]
    assert str(found[2]) == f"a fault of the door: {where}"
    assert faults(hub) == {}


def test_a_delivery_that_cannot_be_encoded_is_nobodys_fault() -> None:
    hub, (producer, consumer), door = _hub("p", "c")
    hub.receive(2, b"join c", 0.0)
    door.fault = True
    hub.receive(1, b"push c m1", 0.0)
    door.fault = False
    hub.receive(1, b"push c m2", 0.0)
    assert list(faults(hub)) == [0]
    assert consumer.words() == ["Reply", "line:m2"]
    assert producer.words() == []


# --- Portions ------------------------------------------------------------------------------------


def _finish(hub: Hub, number: int, session: LineSession, data: bytes) -> list[list[str]]:
    """What is said in each portion of one chunk."""
    more = hub.receive(number, data, 0.0)
    said = []
    while True:
        said.append(session.words())
        for each in touched(hub):
            sent(hub, each)
        if not more:
            return said
        more = hub.go_on(number, 0.0)


def test_a_chunk_that_asks_for_much_is_worked_off_in_portions() -> None:
    hub, (a,), _ = _hub("a", portion_bytes=250)
    said = _finish(hub, 1, a, b"; ".join([b"list"] * 7))
    assert said == [["Reply"] * 3, ["Reply"] * 3, ["Reply"]]
    assert hub.go_on(1, 0.0) is False


def test_what_fills_somebody_else_makes_a_portion_too() -> None:
    hub, (_, b), _ = _hub("a", "b", portion_bytes=250)
    hub.receive(2, b"join c", 0.0)
    touched(hub)
    b.data_to_send()
    pushes = b"; ".join([b"push c m%030d" % n for n in range(40)])  # 37 bytes each when delivered
    portions = []
    more = hub.receive(1, pushes, 0.0)
    while True:
        portions.append(b.outbound_bytes)
        for each in touched(hub):
            sent(hub, each)
        if not more:
            break
        more = hub.go_on(1, 0.0)
    assert sum(portions) == 40 * 37
    # What is collected for a session counts when it is handed over, so it may be twice as much.
    assert all(250 <= size <= 2 * 250 + 37 for size in portions[:-1])
    assert len(b.said) == 1 + 40


def test_the_portion_that_ends_with_the_chunk_leaves_nothing() -> None:
    hub, (a,), _ = _hub("a", portion_bytes=200)
    assert _finish(hub, 1, a, b"list; list") == [["Reply"] * 2]


def test_what_was_sent_ahead_of_the_acceptance_comes_in_portions_as_well() -> None:
    hub, (_,), door = _hub("a", portion_bytes=250)
    hub.open(2, door, 0.0)
    names = b" ".join([b"c%d" % n for n in range(5)])
    assert _finish(hub, 2, door.sessions[2], b"connect b " + names) == [
        ["Accept", "Reply", "Reply"],
        ["Reply", "Reply", "Reply"],
    ]


def test_what_waits_is_forgotten_with_its_session() -> None:
    hub, (_, b), _ = _hub("a", "b", portion_bytes=100)
    assert hub.receive(1, b"list; join c", 0.0) is True
    hub.forget(1, 0.0)
    assert hub.go_on(1, 0.0) is False
    hub.receive(2, b"list", 0.0)
    (reply,) = b.said
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    assert [client.client_id for client in reply.body] == ["b"]


def test_others_are_served_while_a_portion_waits() -> None:
    hub, (a, b), _ = _hub("a", "b", portion_bytes=100)
    assert hub.receive(1, b"list; list", 0.0) is True
    touched(hub)
    a.data_to_send()
    assert hub.receive(2, b"join c", 0.0) is False
    assert b.words() == ["Reply"]
    assert a.words() == ["Reply"]
    hub.block(1, 0.0)
    hub.unblock(1, 0.0)
    assert hub.go_on(1, 0.0) is False
    assert a.words() == ["Reply"]


def test_the_native_door_counts_what_it_queues() -> None:
    world = World()
    peer = Peer(world, "a", ["c"])
    session = world.hub._sessions[peer.link.number]
    assert session.outbound_bytes == 0
    peer.say(push("c", 1, "m", b"x" * 1_000), Frame.build(MessageType.PING))
    assert session.outbound_bytes >= 1_000
    peer.take()
    assert session.outbound_bytes == 0


def test_a_node_proves_itself_to_the_relay_and_nobody_is_asked() -> None:
    relay = _Relay()
    hub, door = Hub(Broker(), guarded=True, relay=relay), LineDoor()
    for number in (1, 2):
        hub.open(number, door, 0.0)
    hub.receive(1, b"connect a", 0.0)
    assert [question.session for question in questions(hub)] == [1]
    relay.nodes = ("n",)
    hub.receive(2, b"connect n; join c; push c m", 0.0)
    assert not questions(hub)
    assert door.sessions[2].words() == ["Accept", "Reply", "line:m"]
