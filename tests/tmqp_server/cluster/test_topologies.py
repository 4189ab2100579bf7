"""Any servers, joined in any way: each message is once where it belongs, and nothing goes round."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.cluster.net import Net
from tests.tmqp_server.outputs import faults
from tests.tmqp_server.peers import Peer, ack, push
from tmqp.constants import MessageType

NAMES = "abcd"


@st.composite
def topologies(draw: st.DrawFn) -> dict[str, list[str]]:
    """Which server has which masters; nobody is its own."""
    names = NAMES[: draw(st.integers(2, 4))]
    return {
        name: draw(st.lists(st.sampled_from([n for n in names if n != name]), unique=True))
        for name in names
    }


ACTIONS = st.one_of(
    st.tuples(st.just("push"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("answer"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("cut"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("wait"), st.integers(1, 3), st.integers(0, 2)),
)


@settings(deadline=None, max_examples=60)
@given(
    masters=topologies(),
    actions=st.lists(ACTIONS, max_size=12),
    share=st.booleans(),
)
def test_every_message_is_once_where_it_belongs(
    masters: dict[str, list[str]], actions: list[tuple[str, int, int]], share: bool
) -> None:
    net = Net(masters, share=share)
    names = list(masters)
    consumers = {name: Peer(net[name], f"consumer-{name}", ["c"]) for name in names}
    producers = {name: Peer(net[name], f"producer-{name}") for name in names}
    got: dict[str, list[str]] = {name: [] for name in names}
    held: dict[str, list[str]] = {name: [] for name in names}
    pushed: list[tuple[str, str]] = []
    numbers = itertools.count()

    def listen() -> None:
        for name, consumer in consumers.items():
            for frame in consumer.take():
                if frame.type == MessageType.QUEUE_MESSAGE:
                    got[name].append(frame.message_id)
                    held[name].append(frame.message_id)

    for what, number, more in actions:
        name = names[number % len(names)]
        if what == "push":
            pushed.append((name, f"m{next(numbers)}"))
            headers = [("CC", f"c;7;{pushed[-1][1]}-copy")] if more == 2 else []
            producers[name].say(push("c", 1, pushed[-1][1], headers=headers))
            if headers:
                pushed.append((name, f"{pushed[-1][1]}-copy"))
        elif what == "answer" and held[name]:
            message_id = held[name].pop()
            queue_id = 7 if message_id.endswith("copy") else 1
            consumers[name].say(ack(push("c", queue_id, message_id)))
        elif what == "cut":
            net.cut(name)
        elif what == "wait":
            net.advance(number)
        net.settle()
        listen()
    net.advance(9.0)  # all connections stand again, and what waited has gone over
    listen()
    for name in names:
        expected = [m for producer, m in pushed if name == producer or name in masters[producer]]
        assert sorted(got[name]) == sorted(expected)
        for queue in net[name].broker.queues():
            assert queue.imbalance() == 0
    for node in net.nodes.values():
        assert faults(node.world.hub) == {}
        assert all(link.outbox.dropped == 0 for link in node.relay.links)
