"""Queues where keys count: one consumer for a bucket, or one message of a key at a time.

A plain model beside the broker: the messages of each key, in order, and who has what in hand.
Whatever is delivered must be the next of its key, to whom it may go, and nothing is lost.
"""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.engine.keyed import keyed
from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    PUT_BACK_END,
    PUT_BACK_START,
    STATUS_PAUSED,
    STATUS_ROUND_ROBIN,
)
from tmqp_server.engine.commands import (
    Block,
    Unblock,
)
from tmqp_server.engine.effects import Deliver
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.keys import bucket_of
from tmqp_server.engine.options import STICKY, STRICT, QueueChanges

# --- A model beside the broker -------------------------------------------------------------------

CLIENTS: Final = ("a", "b", "c")
KEYS: Final = ("k", "l", "m", "n", "")


class Model:
    """The messages of each key and priority, in order; who has which."""

    def __init__(self, world: World, keys: str, back: str) -> None:
        self.world = world
        self.strict = keys == STRICT
        self.back = back
        self.waiting: dict[tuple[str, bool], list[str]] = {}
        self.high: set[str] = set()
        self.joined: list[str] = []
        self.blocked: set[str] = set()
        self.in_hand: dict[str, str] = {}
        #: Whose each bucket is, as far as anybody has had a message of it since somebody came.
        self.owners: dict[int, str] = {}
        self.pushed = 0
        self.done: set[str] = set()

    def line(self, message_id: str) -> list[str]:
        key, dash, _ = message_id.partition("-")
        return self.waiting.setdefault((key if dash else "", message_id in self.high), [])

    def act(self, what: str, first: object, second: object) -> None:
        world = self.world
        world.last = []
        if what == "push":
            self.pushed += 1
            message_id = f"{first}-{self.pushed}" if first else f"x{self.pushed}"
            if second == 0:
                self.high.add(message_id)
            self.line(message_id).append(message_id)
            world.push(message_id, high=second == 0)
        elif what == "join" and first not in self.joined:
            self.joined.append(str(first))
            self.owners = {}
            world.join(str(first))
        elif what == "leave" and first in self.joined:
            self.joined.remove(str(first))
            self.owners = {b: name for b, name in self.owners.items() if name != first}
            world.leave(str(first))
        elif what == "block":
            self.blocked.add(str(first))
            world.step(Block(world.numbers[str(first)]))
        elif what == "unblock":
            self.blocked.discard(str(first))
            world.step(Unblock(world.numbers[str(first)]))
        elif what == "pause":
            status = STATUS_PAUSED if first else STATUS_ROUND_ROBIN
            world.update(QueueChanges(status=status))
            self.follow()
            world.update(QueueChanges(status=STATUS_ROUND_ROBIN))
        elif what in ("ack", "nack", "release") and self.in_hand:
            message_id = list(self.in_hand)[int(str(first)) % len(self.in_hand)]
            self.answer(message_id, what, bool(second))

    def answer(self, message_id: str, what: str, end: bool) -> None:
        name = self.in_hand.pop(message_id)
        world = self.world
        if what == "ack":
            self.done.add(message_id)
            world.ack(name, message_id)
            return
        line = self.line(message_id)
        to_end = end if what == "release" else self.back == "putback-end"
        if to_end and not self.strict:
            line.append(message_id)
        elif self.strict or "-" not in message_id:
            line.insert(0, message_id)
        else:
            # Among what came back, where it stood.
            at = 0
            while (
                at < len(line)
                and line[at] in self.returned
                and (self.order[line[at]] < self.order[message_id])
            ):
                at += 1
            line.insert(at, message_id)
        self.returned.add(message_id)
        if what == "release":
            world.release(name, message_id, PUT_BACK_END if end else PUT_BACK_START)
        else:
            world.nack(name, message_id)

    returned: set[str]
    order: dict[str, int]

    def follow(self) -> None:
        for _ in range(2_000):
            for effect in self.world.last:
                if isinstance(effect, Deliver):
                    self._delivered(effect)
            due = self.world.broker.next_deadline()
            if due is None or due > self.world.now:
                return
            self.world.told(self.world.broker.on_deadline(self.world.now))
        raise AssertionError("it does not come to an end")

    def _delivered(self, effect: Deliver) -> None:
        (number,) = effect.sessions
        name, message_id = self.world.names[number], effect.message.message_id
        assert name in self.joined
        assert name not in self.blocked
        line = self.line(message_id)
        key, dash, _ = message_id.partition("-")
        assert line[0] == message_id, "the next of its key"
        line.pop(0)
        if dash and self.strict:
            assert not [each for each in self.in_hand if each.startswith(f"{key}-")]
        elif dash:
            owner = self.owners.setdefault(bucket_of(key), name)
            assert owner == name, "whose the bucket is"
            others = [
                each
                for each, who in self.in_hand.items()
                if who != name and each.startswith(f"{key}-")
            ]
            assert not others, "nobody else has anything of it"
        self.order[message_id] = len(self.order)
        self.in_hand[message_id] = name

    def check(self) -> None:
        """What is there is what is left, and nobody is there who could take any of it."""
        queue = self.world.queue()
        for high, waiting in ((True, queue.high), (False, queue.regular)):
            there = sorted(each.message_id for each in waiting.messages())
            lines = [line for (_, is_high), line in self.waiting.items() if is_high == high]
            assert there == sorted(each for line in lines for each in line)
        assert queue.imbalance() == 0
        ready = [name for name in self.joined if name not in self.blocked]
        if not ready:
            return
        for (key, _), line in self.waiting.items():
            if not line:
                continue
            assert key, "without a key anybody takes it"
            hands = [who for each, who in self.in_hand.items() if each.startswith(f"{key}-")]
            if self.strict:
                assert hands or self._of_other_priority_first(key)
                continue
            bucket = bucket_of(key)
            in_other_hands = [
                who
                for each, who in self.in_hand.items()
                if "-" in each and bucket_of(each.partition("-")[0]) == bucket
            ]
            assert self.owners.get(bucket) not in ready or in_other_hands
            assert in_other_hands or any(name in self.blocked for name in self.joined)

    def _of_other_priority_first(self, key: str) -> bool:
        table = self.world.queue().keys
        assert table is not None
        return key in table.locks


ACTS = st.one_of(
    st.tuples(st.just("push"), st.sampled_from(KEYS), st.integers(0, 4)),
    st.tuples(st.just("push"), st.sampled_from(KEYS), st.integers(0, 4)),
    st.tuples(st.just("push"), st.sampled_from(KEYS), st.integers(0, 4)),
    st.tuples(st.sampled_from(("join", "leave")), st.sampled_from(CLIENTS), st.none()),
    st.tuples(st.sampled_from(("block", "unblock")), st.sampled_from(CLIENTS), st.none()),
    st.tuples(st.sampled_from(("ack", "nack", "release")), st.integers(0, 20), st.booleans()),
    st.tuples(st.sampled_from(("ack", "nack", "release")), st.integers(0, 20), st.booleans()),
    st.tuples(st.just("pause"), st.booleans(), st.none()),
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(ACTS, max_size=80),
    st.sampled_from((1_000, 3, 1)),
    st.sampled_from(("putback-start", "putback-end")),
    st.sampled_from((STICKY, STRICT)),
)
def test_the_order_of_a_key_holds(
    script: list[tuple[str, object, object]], budget: int, back: str, keys: str
) -> None:
    limits = EngineLimits(max_work_per_step=budget)
    world = keyed(keys, limits=limits, delivery_handler=back, put_back_limit=-1)
    world.connect(*CLIENTS)
    model = Model(world, keys, back)
    model.returned, model.order = set(), {}
    for what, first, second in script:
        model.act(what, first, second)
        model.follow()
        model.check()
