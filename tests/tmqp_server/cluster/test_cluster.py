"""Servers joined in memory: what is passed on, what is not, and that nothing goes round."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tmqp_server.cluster.net import Net
from tests.tmqp_server.peers import Peer, ack, greeting, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp_server.cluster.filters import NodeFilter, Passing

CHAIN = {"a": ["b"], "b": ["c"], "c": []}
STAR = {"hub": [], "x": ["hub"], "y": ["hub"], "z": ["hub"]}
LEADER = {"leader": ["x", "y"], "x": [], "y": []}
RING = {"a": ["b"], "b": ["c"], "c": ["a"]}
PAIR = {"a": ["b"], "b": ["a"]}
MESH = {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}


def received(peer: Peer) -> list[str]:
    """The ids of the messages a consumer has got."""
    return [f.message_id for f in peer.take() if f.type == MessageType.QUEUE_MESSAGE]


def nodes_of(net: Net, name: str) -> list[dict[str, Any]]:
    """The list of nodes of a server."""
    body = Peer(net[name], f"asks-{name}").ask(Operation.INSTANCE_LIST).payload
    nodes: list[dict[str, Any]] = json.loads(body)
    return nodes


# --- Queue messages ------------------------------------------------------------------------------


def test_a_message_sent_to_a_slave_is_consumed_from_its_master_too() -> None:
    net = Net({"slave": ["master"], "master": []})
    near, far = Peer(net["slave"], "near", ["c"]), Peer(net["master"], "far", ["c"])
    producer = Peer(net["slave"], "p")
    producer.say(push("c", 1, "m", b"hello", headers=[("K", "v")], ttl=9))
    net.settle()
    (here,), (there,) = near.take(), far.take()
    assert (here.message_id, here.source, here.ttl) == ("m", "p", 8)
    assert (there.message_id, there.source, there.ttl) == ("m", "p", 7)
    assert (there.target, there.content_type, there.payload) == ("c", 1, b"hello")
    assert there.headers == [("K", "v")]


@pytest.mark.parametrize(
    ("masters", "sender", "reached"),
    [
        (CHAIN, "a", "ab"),
        (CHAIN, "b", "bc"),
        (CHAIN, "c", "c"),
        (RING, "a", "ab"),
        (PAIR, "a", "ab"),
        (PAIR, "b", "ab"),
        (MESH, "b", "abc"),
    ],
)
def test_each_message_is_there_once_and_nothing_goes_round(
    masters: dict[str, list[str]], sender: str, reached: str
) -> None:
    net = Net(masters)
    consumers = {name: Peer(net[name], f"consumer-{name}", ["c"]) for name in masters}
    producer = Peer(net[sender], "p")
    for number in range(5):
        producer.say(push("c", 1, f"m{number}"))
    net.settle()
    got = {name: received(consumer) for name, consumer in consumers.items()}
    assert got == {name: [f"m{n}" for n in range(5)] if name in reached else [] for name in masters}
    assert {name: net[name].broker.statistics().messages for name in masters} == dict.fromkeys(
        masters, 0
    )


def test_a_leader_gives_its_messages_to_all_its_masters() -> None:
    net = Net(LEADER)
    consumers = [Peer(net[name], "c", ["c"]) for name in "xy"]
    Peer(net["leader"], "p").say(push("c", 1, "m"))
    Peer(net["x"], "p").say(push("c", 1, "mine"))
    net.settle()
    assert [received(consumer) for consumer in consumers] == [["mine", "m"], ["m"]]


def test_a_message_without_another_hop_stays_where_it_is() -> None:
    net = Net(PAIR)
    near, far = Peer(net["a"], "near", ["c"]), Peer(net["b"], "far", ["c"])
    Peer(net["a"], "p").say(push("c", 1, "last", ttl=1), push("c", 1, "more", ttl=2))
    net.settle()
    assert received(near) == ["last", "more"]
    assert received(far) == ["more"]
    assert net.nodes["a"].relay.statistics.spent == 1


def test_what_a_master_makes_of_a_message_is_not_told_to_its_producer() -> None:
    net = Net({"slave": ["master"], "master": []})
    admin = Peer(net["master"], "admin")
    admin.ask(Operation.CREATE_QUEUE, "c", headers=[("Queue-Id", "1"), ("Queue-Status", "stop")])
    producer = Peer(net["slave"], "p")
    producer.say(push("c", 1, "m", pending_acknowledge=True, pending_response=True))
    net.settle()
    (answer,) = producer.take()
    assert (answer.type, answer.header("Nack-Reason")) == (MessageType.ACKNOWLEDGE, None)
    (link,) = net.nodes["slave"].relay.links
    assert link.ignored == 0


def test_copies_are_the_same_on_all_nodes() -> None:
    net = Net(PAIR)
    near = Peer(net["a"], "near", ["c", "d", "e"])
    far = Peer(net["b"], "far", ["c", "d", "e"])
    headers = [("CC", "d;7"), ("cc", "e;;named"), ("Own", "x")]
    Peer(net["a"], "p").say(push("c", 1, "m", headers=headers))
    net.settle()
    here, there = near.take(), far.take()
    keys = [(f.message_id, f.target, f.content_type, f.headers, f.source) for f in here]
    assert [key[1:3] for key in keys] == [("c", 1), ("d", 7), ("e", 1)]
    assert keys[0][3] == headers
    assert keys[2][0] == "named"
    assert [(f.message_id, f.target, f.content_type, f.headers, f.source) for f in there] == keys


# --- Clients of different nodes ------------------------------------------------------------------


def test_clients_of_different_nodes_ask_and_answer_each_other() -> None:
    net = Net(PAIR)
    asker, answerer = Peer(net["a"], "asker"), Peer(net["b"], "answerer")
    asker.say(
        Frame.build(
            MessageType.DIRECT_MESSAGE,
            "answerer",
            5,
            b"?",
            message_id="q",
            pending_response=True,
        )
    )
    net.settle()
    assert asker.take() == [], "nobody of that id is here, but somebody is elsewhere"
    (question,) = answerer.take()
    assert (question.source, question.payload, question.message_id) == ("asker", b"?", "q")
    answerer.say(Frame.build(MessageType.RESPONSE, "asker", 0, b"!", message_id="q"))
    answerer.say(
        Frame.build(MessageType.ACKNOWLEDGE, "asker", 5, message_id="q", high_priority=True)
    )
    net.settle()
    response, acknowledge = asker.take()
    assert (response.payload, response.source) == (b"!", "answerer")
    assert (acknowledge.type, acknowledge.message_id) == (MessageType.ACKNOWLEDGE, "q")
    assert answerer.take() == []


def test_without_a_master_a_sender_hears_that_nobody_is_there() -> None:
    net = Net(PAIR)
    net.cut("b", away=True)
    sender = Peer(net["a"], "s")
    message = Frame.build(MessageType.DIRECT_MESSAGE, "nobody", 5, b"?", message_id="q")
    sender.say(message)
    (answer,) = sender.take()
    assert (answer.type, answer.content_type) == (MessageType.RESPONSE, 404)


def test_routers_of_all_nodes_get_what_is_published() -> None:
    net = Net({"slave": ["master"], "master": []})
    consumers = []
    for name in ("slave", "master"):
        consumers.append(Peer(net[name], "consumer", ["c"]))
        consumers[-1].ask(Operation.CREATE_QUEUE, "c", headers=[("Queue-Id", "1")])
        consumers[-1].ask(Operation.CREATE_ROUTER, "r")
        body = b'{"Name":"b","Target":"c","ContentType":1,"BindingType":1}'
        consumers[-1].ask(Operation.ADD_BINDING, "r", body)
    producer = Peer(net["slave"], "p")
    producer.say(
        Frame.build(MessageType.ROUTER, "r", 0, b"x", message_id="m", pending_acknowledge=True)
    )
    net.settle()
    assert [f.type for f in producer.take()] == [MessageType.ACKNOWLEDGE]
    delivered = [consumer.take() for consumer in consumers]
    assert [len(frames) for frames in delivered] == [1, 1]
    assert [frames[0].source for frames in delivered] == ["p", "p"]


# --- Who is a node -------------------------------------------------------------------------------


def test_the_list_of_nodes() -> None:
    net = Net({"a": ["b", "c"], "b": ["a"], "c": []})
    net.advance(2.0)
    net.cut("c", away=True)
    master_b, master_c, slave_b = nodes_of(net, "a")
    assert master_b == {
        "Id": "b",
        "Name": None,
        "Host": "host-b",
        "Slave": False,
        "Connected": True,
        "Lifetime": 2000,
    }
    assert (master_c["Id"], master_c["Connected"], master_c["Lifetime"]) == ("c", False, 0)
    assert slave_b == {
        "Id": "b",
        "Name": "b",
        "Host": "host-b",
        "Slave": True,
        "Connected": True,
        "Lifetime": 2000,
    }
    assert [node["Id"] for node in nodes_of(net, "c")] == []
    clients = json.loads(Peer(net["a"], "q").ask(Operation.CLIENT_LIST).payload)
    assert [client["Id"] for client in clients] == ["asks-a", "q"], "a node is no client"


def test_events_tell_of_nodes() -> None:
    net = Net({"a": ["b"], "b": []})
    listeners = []
    for name in "ab":
        listeners.append(Peer(net[name], "listener"))
        for event in ("NodeConnected", "NodeDisconnected", "ClientConnected"):
            listeners[-1].say(Frame.build(MessageType.EVENT, event, 1, message_id=event))
        assert [f.content_type for f in listeners[-1].take()] == [0, 0, 0]
    net.cut("b")
    net.advance(1.5)
    told = [
        [(f.source, json.loads(f.payload)["Id"], json.loads(f.payload)["Slave"]) for f in p.take()]
        for p in listeners
    ]
    words = ("NodeDisconnected", "NodeConnected")
    assert told == [[(word, "b", False) for word in words], [(word, "a", True) for word in words]]


def node_greeting(name: str, token: str, kind: str = "server") -> bytes:
    return greeting("", ConnectionInformation(name, name, kind, token).encode())


def test_a_stranger_that_calls_itself_a_node_is_refused() -> None:
    net = Net({"a": ["b"], "b": []})
    for name, token, code in (("x", "wrong", 401), ("x", "", 401), ("b", None, 409)):
        stranger = Peer(net["b"])
        stranger.say(node_greeting(name, "secret of the cluster" if token is None else token))
        (answer,) = stranger.take()
        assert (answer.type, answer.content_type) == (MessageType.SERVER, code)
        assert not stranger.open
    assert net.nodes["b"].relay.statistics.refused_nodes == 3


def test_alone_a_server_gives_nobody_the_rights_of_a_node() -> None:
    world = World()
    stranger = Peer(world)
    stranger.say(node_greeting("x", "secret of the cluster"))
    assert stranger.take()[-1].content_type == 202
    stranger.say(push("c", 1, "m", source="another"))
    assert not stranger.open


def test_the_token_of_another_cluster_does_not_connect() -> None:
    net = Net({"a": ["b"], "b": []}, tokens={"a": "other"})
    (link,) = net.nodes["a"].relay.links
    assert link.connections == 0
    assert "token" in link.problem


def test_a_node_does_nothing_but_bring_messages() -> None:
    net = Net({"b": []})
    node = Peer(net["b"])
    node.say(node_greeting("x", "secret of the cluster"))
    node.take()
    assert node.ask(Operation.JOIN, "c").content_type == 401
    assert node.ask(Operation.REMOVE_CHANNEL, "c").content_type == 401
    node.say(Frame.build(MessageType.SERVER, "c", 641, b"no json", message_id="d"))
    node.say(operation(641, "c", b"no json"))
    (answer,) = node.take()
    assert answer.content_type == 400
    assert node.open


def test_no_client_speaks_to_a_node_and_none_decides_for_it() -> None:
    net = Net({"b": []})
    node = Peer(net["b"])
    node.say(node_greeting("x", "secret of the cluster"))
    node.take()
    client = Peer(net["b"], "client")
    for target in ("x", "@name:x", "@type:server"):
        client.say(Frame.build(MessageType.DIRECT_MESSAGE, target, 1, b"x", message_id="d"))
    client.say(Frame.build(MessageType.RESPONSE, "x", 0, message_id="d"))
    assert node.take() == []
    client.take()
    body = b'{"Channel":"c","Queue":1,"MessageId":"m"}'
    assert client.ask(Operation.DECISION_OVER_NODE, "c", body).content_type != 0


# --- Filters -------------------------------------------------------------------------------------


def test_patterns_choose_on_both_sides() -> None:
    net = Net(PAIR, forward=["log*", "orders/2"], accept=["*s", "orders/*"])
    far = Peer(net["b"], "far", ["logs", "logfile", "orders", "other"])
    producer = Peer(net["a"], "p")
    for channel, queue in (("logs", 1), ("logfile", 1), ("orders", 1), ("orders", 2), ("other", 2)):
        producer.say(push(channel, queue, f"{channel}/{queue}"))
    net.settle()
    assert received(far) == ["logs/1", "orders/2"]
    assert net.nodes["a"].relay.statistics.held_back == 2
    assert net.nodes["b"].relay.statistics.rejected == 1


def test_kinds_choose() -> None:
    net = Net(PAIR, kinds=["direct"])
    far = Peer(net["b"], "far", ["c"])
    near = Peer(net["a"], "p")
    near.say(push("c", 1, "m"))
    near.say(Frame.build(MessageType.DIRECT_MESSAGE, "far", 1, b"x", message_id="d"))
    net.settle()
    assert [f.message_id for f in far.take()] == ["d"]


class _Picky(NodeFilter):
    def forwards(self, passing: Passing) -> bool:
        return passing.message_id != "stays"

    def accepts(self, passing: Passing) -> bool:
        if passing.message_id == "breaks":
            raise ValueError("cannot decide")
        return True


def test_a_filter_in_python_decides_last_and_its_faults_mean_no() -> None:
    net = Net(PAIR, custom=_Picky())
    far = Peer(net["b"], "far", ["c"])
    producer = Peer(net["a"], "p")
    producer.say(*[push("c", 1, name) for name in ("stays", "breaks", "goes")])
    net.settle()
    assert received(far) == ["goes"]
    relay = net.nodes["b"].relay
    assert relay.statistics.filter_errors == 1
    assert isinstance(relay.take_error(), ValueError)


# --- Broken connections --------------------------------------------------------------------------


def test_messages_wait_for_a_master_that_is_away() -> None:
    net = Net({"slave": ["master"], "master": []})
    far = Peer(net["master"], "far", ["c"])
    producer = Peer(net["slave"], "p")
    net.cut("master", away=True)
    for number in range(3):
        producer.say(push("c", 1, f"m{number}"))
    net.advance(3.0)
    assert received(far) == []
    net.nodes["master"].away = False
    net.advance(8.0)
    assert received(far) == ["m0", "m1", "m2"]


def test_the_oldest_make_room_when_too_much_waits() -> None:
    net = Net({"slave": ["master"], "master": []}, buffer_bytes=300)
    far = Peer(net["master"], "far", ["c"])
    producer = Peer(net["slave"], "p")
    net.cut("master", away=True)
    for number in range(10):
        producer.say(push("c", 1, f"m{number}", b"x" * 80))
    outbox = net.nodes["slave"].relay.links[0].outbox
    assert outbox.waiting_bytes <= 300
    net.nodes["master"].away = False
    net.advance(8.0)
    assert received(far) == ["m7", "m8", "m9"]
    assert outbox.dropped == 7


def test_a_slave_that_comes_back_takes_its_place() -> None:
    net = Net({"slave": ["master"], "master": []})
    (first,) = net.nodes["slave"].wires.values()
    again = Peer(net["master"])
    again.say(node_greeting("slave", "secret of the cluster"))
    assert again.take()[-1].content_type == 202
    assert first.closed


# --- Acknowledges and decisions ------------------------------------------------------------------


def test_an_acknowledge_reaches_the_master_where_the_message_is_in_flight() -> None:
    net = Net({"slave": ["master"], "master": []})
    near, far = Peer(net["slave"], "near", ["c"]), Peer(net["master"], "far", ["c"])
    Peer(net["slave"], "p").say(push("c", 1, "m"))
    net.settle()
    (delivery,) = near.take()
    far.take()
    assert net["master"].broker.statistics().in_flight == 1
    near.say(ack(delivery, "not me"))
    net.settle()
    assert net["master"].broker.statistics().in_flight == 1, "somebody else may still take it"
    Peer(net["slave"], "p2").say(push("c", 1, "n"))
    net.settle()
    (delivery,) = near.take()
    near.say(ack(delivery))
    net.settle()
    (queue,) = net["master"].broker.queues()
    assert list(queue.flights) == ["m"]
    assert queue.imbalance() == 0


def decided(net: Net, name: str) -> tuple[int, int]:
    """Messages that wait in a server, and the imbalance of its books."""
    broker = net[name].broker
    return broker.statistics().messages, sum(queue.imbalance() for queue in broker.queues())


@pytest.mark.parametrize("masters", [PAIR, {"a": ["b"], "b": []}, {"a": [], "b": ["a"]}])
def test_what_one_node_is_done_with_goes_from_the_others(masters: dict[str, list[str]]) -> None:
    net = Net(masters, share=True)
    consumer = Peer(net["b"], "consumer", ["c"])
    producer = Peer(net["a"], "p")
    Peer(net["b"], "p").say(push("c", 1, "elsewhere"))
    producer.say(*[push("c", 1, f"m{number}") for number in range(3)])
    net.settle()
    reached = bool(masters["a"])
    delivered = consumer.take()
    assert [f.message_id for f in delivered] == ["elsewhere", *["m0", "m1", "m2"] * reached]
    waiting = 3 + bool(masters["b"])
    assert decided(net, "a") == (waiting, 0)
    consumer.say(ack(delivered[0]))
    if reached:
        consumer.say(ack(delivered[2]), ack(delivered[3], "not this one"))
    net.settle()
    assert decided(net, "a") == (waiting - bool(masters["b"]) - 2 * reached, 0)
    late = Peer(net["a"], "late")
    late.say(operation(Operation.JOIN, "c"))
    assert received(late) == (["m0"] if reached else ["m0", "m1", "m2"])


def test_a_message_in_flight_is_not_sent_again_after_another_node_was_done_with_it() -> None:
    net = Net(PAIR, share=True)
    headers = [("Queue-Id", "1"), ("Delivery-Handler", "putback-end")]
    slow = Peer(net["a"], "slow", ["c"])
    slow.ask(Operation.CREATE_QUEUE, "c", b'{"AcknowledgeTimeout":1000}', headers=headers)
    quick = Peer(net["b"], "quick", ["c"])
    Peer(net["b"], "p").say(push("c", 1, "m"))
    net.settle()
    assert received(slow) == ["m"]
    (delivery,) = quick.take()
    quick.say(ack(delivery))
    net.settle()
    net.advance(5.0)
    assert received(slow) == []
    assert decided(net, "a") == (0, 0)
    assert net["a"].broker.statistics().in_flight == 0


def test_a_producer_hears_of_a_message_that_was_consumed_elsewhere() -> None:
    net = Net(PAIR, share=True)
    producer = Peer(net["a"], "p")
    headers = [("Queue-Id", "1"), ("Delivery-Handler", "ack-consumer")]
    producer.ask(Operation.CREATE_QUEUE, "c", headers=headers)
    consumer = Peer(net["b"], "consumer", ["c"])
    for name, reason in (("good", None), ("bad", "broken")):
        producer.say(push("c", 1, name, pending_acknowledge=True))
        net.settle()
        assert producer.take() == []
        (delivery,) = consumer.take()
        consumer.say(ack(delivery, reason))
        net.settle()
        (told,) = producer.take()
        assert (told.type, told.message_id) == (MessageType.ACKNOWLEDGE, name)
        assert (told.header("Nack-Reason") is None) == (reason is None)


def test_decisions_are_not_shared_unless_that_is_wanted() -> None:
    net = Net(PAIR)
    consumer = Peer(net["b"], "consumer", ["c"])
    Peer(net["a"], "p").say(push("c", 1, "m"))
    net.settle()
    (delivery,) = consumer.take()
    consumer.say(ack(delivery))
    net.settle()
    assert decided(net, "a") == (1, 0)


def test_decisions_pass_over_what_was_cleared() -> None:
    net = Net(PAIR, share=True)
    consumer = Peer(net["b"], "consumer", ["c"])
    producer = Peer(net["a"], "p")
    for number in range(4):
        producer.say(push("c", 1, f"m{number}", high_priority=number % 2 == 1))
    net.settle()
    delivered = consumer.take()
    producer.ask(Operation.CLEAR_MESSAGES, "c", headers=[("Queue-Id", "1"), ("Messages", "yes")])
    net.settle()
    consumer.say(*[ack(delivery) for delivery in delivered[:3]])
    net.settle()
    assert decided(net, "a") == (1, 0)
    statistics = net["a"].broker.statistics()
    # Each server of the pair hears it as master and as slave of the other.
    assert (statistics.decisions_applied, statistics.decisions_unknown) == (1, 5)
    (queue,) = net["a"].broker.queues()
    assert list(queue.shared) == ["m3"]
