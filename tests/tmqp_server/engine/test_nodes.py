"""Nodes as the broker sees them: slaves and masters, their acknowledges and their decisions."""

from __future__ import annotations

import copy

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.tmqp_server.engine.test_machine import (
    LIMITS,
    OPTIONS,
    BrokerMachine,
    channels,
    queue_ids,
)
from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_CACHE, STATUS_PAUSED, STATUS_PULL
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import (
    BY_ID,
    Acknowledge,
    ApplyDecision,
    ClearMessages,
    Connect,
    ListClients,
    ListNodes,
    PassAnswer,
    PushExtras,
    ReportMaster,
    SendDirect,
    SubscribeEvent,
)
from tmqp_server.engine.effects import Accept, Reply
from tmqp_server.engine.events import NODE_CONNECTED, NODE_DISCONNECTED
from tmqp_server.engine.model.delivery import DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.nodes import NodeSnapshot
from tmqp_server.engine.options import ASKS_RESPONSE, BrokerOptions, QueueChanges


def sharing(options: BrokerOptions | None = None, **handlers: DeliveryHandler) -> World:
    """A world of a node that shares decisions with others."""
    options = queue_defaults() if options is None else options
    options.shares_decisions = options.takes_nodes = True
    return World(None, options, handlers)


def enter_node(world: World, name: str = "n") -> int:
    """A slave connects."""
    number = len(world.names) + 1
    world.numbers[name] = number
    world.names[number] = name
    connect = Connect(number, "hello", name, name, "server", node=True, host="h")
    assert world.step(connect) == [f"{name} accepted"]
    return number


def decision(message_id: str, queue_id: int = 1, positive: bool = True) -> ApplyDecision:
    return ApplyDecision("CH", queue_id, message_id, positive)


# --- Decisions -----------------------------------------------------------------------------------


def test_nodes_are_told_when_a_queue_is_done_with_a_message() -> None:
    world = sharing()
    world.join("a")
    world.push("m1")
    world.push("m2")
    assert world.ack("a", "m1") == ["nodes: ch/1 m1 done"]
    assert world.nack("a", "m2") == ["nodes: ch/1 m2 refused"]
    assert world.queue().shared == {}


def test_nodes_are_told_of_what_nobody_need_acknowledge() -> None:
    world = sharing(queue_defaults(request_acknowledge=False))
    world.join("a")
    assert world.push("m1") == ["a <- m1 F", "nodes: ch/1 m1 done"]


def test_nodes_are_not_told_of_what_goes_back_or_is_cleared_or_was_never_kept() -> None:
    world = sharing(queue_defaults(delivery_handler="putback-end"))
    world.join("a")
    world.push("m1")
    assert world.nack("a", "m1") == ["a <- m1 AR"]
    world.step(ClearMessages(world.numbers["a"], None, "ch", 1, True, True))
    world.create(QueueChanges(status=0), queue_id=2)
    world.push("m2", queue_id=2)
    assert world.ack("a", "m2", queue_id=2) == []


def test_a_message_that_waits_is_removed_wherever_it_stands() -> None:
    world = sharing(queue_defaults(status=STATUS_PAUSED))
    for number in range(6):
        world.push(f"m{number}", high=number % 2 == 0, extras=PushExtras(expires_in_ms=5_000))
    for name in ("m3", "m0", "m5"):
        assert world.step(decision(name)) == []
    assert world.books()["done"] == 3
    assert world.broker.statistics().bytes == 3 * (10 + MESSAGE_OVERHEAD_BYTES)
    world.update(QueueChanges(status=1))
    delivered = [word for word in world.join("a") if " <- " in word]
    assert delivered == ["a <- m2 FA", "a <- m4 FA", "a <- m1 FA"]
    assert world.wait(6.0) == []


def test_unknown_decisions_are_counted() -> None:
    world = sharing()
    for command in (decision("m"), ApplyDecision("none", 1, "m")):
        world.step(command)
    world.push("m")
    world.step(decision("other"))
    world.step(decision("m", 2))
    statistics = world.broker.statistics()
    assert (statistics.decisions_applied, statistics.decisions_unknown) == (0, 4)
    silent = World()
    silent.push("m")
    silent.step(decision("m"))
    assert silent.broker.statistics().messages == 1, "a broker that does not share decides alone"


def test_what_is_in_flight_stays_there_and_is_not_sent_again() -> None:
    world = sharing(queue_defaults(delivery_handler="putback-start", acknowledge_timeout_ms=1_000))
    world.join("a")
    world.push("m1")
    world.step(decision("m1"))
    assert world.books()["in_flight"] == 1
    assert world.wait(3.0) == []
    assert world.books()["done"] == 1


def test_a_deferred_message_is_settled_when_its_time_comes() -> None:
    world = sharing()
    world.join("a")
    world.push("m1", extras=PushExtras(delay_ms=1_000))
    world.step(decision("m1"))
    assert world.wait(2.0) == []
    assert world.books()["done"] == 1


def test_of_two_messages_with_one_id_the_first_is_shared() -> None:
    world = sharing()
    world.push("m")
    world.push("m")
    world.step(decision("m"))
    world.step(decision("m"))
    assert world.join("a")[-2:] == ["a <- m FA", "a join: 0"]
    assert world.ack("a", "m") == []


@pytest.mark.parametrize(("asked", "handler"), [(True, "ack-consumer"), (False, "ack-consumer")])
def test_a_producer_that_asked_is_told(asked: bool, handler: str) -> None:
    world = sharing(queue_defaults(delivery_handler=handler))
    for name in ("good", "bad"):
        world.push(name, wants=asked)
    assert world.step(decision("good")) == ["p: good ok F"] * asked
    assert world.step(decision("bad", positive=False)) == ["p: bad no none F"] * asked


def test_a_pull_ends_with_what_is_left() -> None:
    world = sharing(queue_defaults(status=STATUS_PULL, wait_for_acknowledge=True))
    world.join("a")
    for number in range(3):
        world.push(f"m{number}")
    assert world.pull("a", 3) == ["a pull 1/3 m0 FA"]
    world.step(decision("m1"))
    world.step(decision("m2"))
    assert world.ack("a", "m0")[0] == "nodes: ch/1 m0 done"
    assert world.finish() == ["a pull End"]


def test_a_cache_queue_lets_go_of_its_message() -> None:
    world = sharing(queue_defaults(status=STATUS_CACHE))
    world.push("old")
    world.push("new")
    world.step(decision("old"))
    assert world.books()["messages"] == 1
    world.step(decision("new"))
    assert "messages" not in world.books()


class Noting(DeliveryHandler):
    """Notes what leaves the queue."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def message_dequeued(self, queue: QueueFacts, message: Message) -> None:
        self.gone.append(message.message_id)


def test_the_handler_hears_that_a_message_has_left() -> None:
    handler = Noting()
    world = sharing(queue_defaults(delivery_handler="noting"), noting=handler)
    world.push("m")
    world.step(decision("m"))
    assert handler.gone == ["m"]


class SharingMachine(BrokerMachine):
    """Arbitrary commands among nodes that share decisions."""

    def new_world(self) -> World:
        options = copy.copy(OPTIONS)
        options.shares_decisions = True
        return World(LIMITS, options)

    @rule(
        channel=channels,
        queue_id=queue_ids,
        positive=st.booleans(),
        data=st.data(),
        times=st.sampled_from([1, 1, 4]),
    )
    def decide(
        self, channel: str, queue_id: int, positive: bool, data: st.DataObject, times: int
    ) -> None:
        for _ in range(times):
            known = [
                message_id
                for queue in self.world.broker.queues()
                if (queue.channel_name, queue.queue_id) == (channel, queue_id)
                for message_id in queue.shared
            ]
            message_id = data.draw(st.sampled_from(["nobody's", *known]))
            self.do(ApplyDecision(channel.lower(), queue_id, message_id, positive))


SharingMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestSharing = pytest.mark.timeout(300)(SharingMachine.TestCase)


# --- Acknowledges of nodes -----------------------------------------------------------------------


def test_a_positive_answer_of_a_node_stands_for_all_who_have_the_message() -> None:
    world = World(options=queue_defaults(takes_nodes=True))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.push("m2")
    number = enter_node(world)
    assert world.step(Acknowledge(number, "m1", "CH", 1)) == []
    assert world.books()["in_flight"] == 1
    world.ack("a", "m2")
    world.step(Acknowledge(number, "m2", "ch", 1))
    assert world.books()["done"] == 2
    assert world.wait(60.0) == []


def test_a_node_does_not_refuse_for_others_nor_answer_for_what_waits() -> None:
    world = World(options=queue_defaults(takes_nodes=True))
    world.join("a")
    world.push("m1")
    number = enter_node(world)
    world.step(Acknowledge(number, "m1", "ch", 1, False, "no"))
    assert world.books()["in_flight"] == 1
    world.leave("a")
    world.push("m2")
    world.step(Acknowledge(number, "m2", "ch", 1))
    assert (world.books()["messages"], world.books()["unknown_acks"]) == (1, 2)


# --- Who is there --------------------------------------------------------------------------------


def nodes_of(world: World, asker: str = "admin") -> list[tuple[str, bool, bool, int]]:
    if asker not in world.numbers:
        world.connect(asker)
    world.step(ListNodes(world.numbers[asker], "r"))
    (reply,) = world.last
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    found = []
    for node in reply.body:
        assert isinstance(node, NodeSnapshot)
        assert node.host == "h"
        found.append((node.node_id, node.slave, node.connected, node.lifetime_ms))
    return found


def test_nodes_are_listed_and_are_no_clients() -> None:
    events = NODE_CONNECTED | NODE_DISCONNECTED
    world = World(options=BrokerOptions(events=events, takes_nodes=True))
    world.connect("admin")
    assert nodes_of(world) == []
    assert world.step(ReportMaster("m", "h", False)) == []
    assert world.step(ReportMaster("m", "h", True)) == ["event NodeConnected"]
    assert world.step(ReportMaster("m", "h", True)) == []
    world.numbers["n"] = 2
    world.names[2] = "n"
    slave = Connect(2, "hello", "n", "n", "server", node=True, host="h")
    assert world.step(slave) == ["event NodeConnected", "n accepted"]
    world.wait(1.5)
    assert nodes_of(world) == [("m", False, True, 1500), ("n", True, True, 1500)]
    world.step(ListClients(world.numbers["admin"], "r"))
    (reply,) = world.last
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    assert [client.client_id for client in reply.body] == ["admin"]
    assert world.disconnect("n") == ["event NodeDisconnected"]
    assert world.step(ReportMaster("m", "h", False)) == ["event NodeDisconnected"]
    assert nodes_of(world) == [("m", False, False, 0)]
    assert world.step(ListNodes(world.numbers["admin"], None)) == []


def test_where_no_nodes_are_taken_nobody_is_one() -> None:
    world = World()
    world.names[1] = "n"
    world.numbers["n"] = 1
    assert world.step(Connect(1, "hello", "n", "n", "server", node=True)) == ["n accepted"]
    (accepted,) = world.last
    assert isinstance(accepted, Accept)
    assert not accepted.node
    assert nodes_of(world) == []


def test_clients_may_listen_to_nodes() -> None:
    world = World()
    world.connect("a")
    number = world.numbers["a"]
    assert world.step(SubscribeEvent(number, "r", NODE_CONNECTED)) == ["a r: 0"]
    assert world.step(ReportMaster("m", "h", True)) == ["a told NodeConnected"]


def test_nothing_is_addressed_to_a_node() -> None:
    world = World(options=queue_defaults(takes_nodes=True))
    world.connect("a")
    enter_node(world)
    number = world.numbers["a"]
    assert world.step(SendDirect(number, BY_ID, "n", False, 1, "w")) == ["a w: 404"]
    assert world.step(PassAnswer(number, "n", 1, "w", "m", ASKS_RESPONSE)) == []
    assert world.step(Acknowledge(number, "m", "n", 1, wire="w")) == []
    assert world.broker.statistics().answers_dropped == 1


def test_a_message_that_may_be_for_somebody_elsewhere_is_not_answered() -> None:
    world = World()
    world.connect("a")
    command = SendDirect(world.numbers["a"], BY_ID, "x", False, 1, "w")
    command.elsewhere = True
    assert world.step(command) == []
