"""The check of the case about clusters."""

from __future__ import annotations

from tests.docs.cases import case
from tests.tmqp_server.cluster.net import Net
from tests.tmqp_server.peers import Peer, ack, push
from tmqp import MessageType

__all__: list[str] = []


@case(46)
def clusters() -> None:
    net = Net({"a": ["b"], "b": ["a", "c"], "c": ["a"]}, share=True)
    consumers = {name: Peer(net[name], f"consumer-{name}", ["c"]) for name in "bc"}
    producer = Peer(net["a"], "producer")
    headers = [("CC", "c;2")]
    producer.say(push("c", 1, "m", headers=headers, pending_acknowledge=True))
    net.settle()
    answers = producer.take()
    original, copy = consumers["b"].take()
    assert {answer.type for answer in answers} == {MessageType.ACKNOWLEDGE}
    assert [answer.message_id for answer in answers] == ["m", copy.message_id]
    assert (original.message_id, original.source, original.ttl) == ("m", "producer", 14)
    assert consumers["c"].take() == [], "it came from a node, so it goes to no other"
    kept = {queue.queue_id: list(queue.shared) for queue in net["a"].broker.queues()}
    assert kept == {1: ["m"], 2: [copy.message_id]}
    consumers["b"].say(ack(original), ack(copy))
    net.settle()
    assert net["a"].broker.statistics().messages == 0
