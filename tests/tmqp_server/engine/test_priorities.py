"""Queues that ten priorities order: each goes before the lower ones, parked and put back or not.

A plain model beside the broker: the messages of each priority, in order.  Whatever a consumer is
sent must be the first of the highest priority that it accepts.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.keyed import busy, sent
from tests.tmqp_server.engine.test_choosing import Kinds
from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import (
    PUT_BACK_END,
    PUT_BACK_START,
    STATUS_PAUSED,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
)
from tmqp_server.engine.commands import Block, PushExtras, Unblock
from tmqp_server.engine.effects import Deliver, DeliverPulled
from tmqp_server.engine.model.message import Message, Wires
from tmqp_server.engine.options import NO_KEYS, STICKY, STRICT, TEN, TWO, QueueChanges


class Digits(Wires):
    """The priority is the first digit of a message's id; its key is what stands before the dash,
    after the digit."""

    def priority_of(self, message: Message) -> int:
        return int(message.message_id[0])

    def key_of(self, message: Message) -> str:
        key, dash, _ = message.message_id[1:].partition("-")
        return key if dash else ""


def world_of(status: int = STATUS_ROUND_ROBIN, **more: Any) -> World:
    """A world with one queue that ten priorities order."""
    options = queue_defaults(status=status, priorities=TEN, delivery_handler="ack-if-asked", **more)
    world = World(None, options)
    world.broker.know_wires(Digits())
    world.create()
    return world


def push(world: World, *ids: str) -> None:
    """Push messages; those above 4 have high priority, as everywhere."""
    for each in ids:
        world.push(each, high=each[0] > "4")


def got(words: list[str]) -> list[str]:
    """The ids of the messages among deliveries, in their order."""
    return [word.split()[2] for word in sent(words)]


# --- A model beside the broker -------------------------------------------------------------------

CLIENTS: Final = ("a", "b", "c")
KINDS: Final = {"a": "xy", "b": "x", "c": "yz"}


class Model:
    """The messages of each priority that wait, in order; who has which."""

    def __init__(self, chooses: bool) -> None:
        self.world = world_of(put_back_limit=-1)
        self.chooses = chooses
        self.waiting: dict[int, list[str]] = {level: [] for level in range(10)}
        self.in_hand: dict[str, str] = {}
        self.joined: list[str] = []
        self.blocked: set[str] = set()
        self.pushed = 0
        self.done: set[str] = set()

    def wants(self, name: str, message_id: str) -> bool:
        return not self.chooses or message_id[-1] in KINDS[name]

    def act(self, what: str, number: int, level: int) -> None:
        world = self.world
        world.last = []
        name = CLIENTS[number % 3]
        if what == "push":
            self.pushed += 1
            message_id = f"{level}.{self.pushed}{'xyz'[number % 3]}"
            self.waiting[level].append(message_id)
            push(world, message_id)
        elif what == "join" and name not in self.joined:
            self.joined.append(name)
            world.join(name, filter=Kinds(KINDS[name]) if self.chooses else None)
        elif what == "leave" and name in self.joined:
            self.joined.remove(name)
            world.leave(name)
        elif what == "block" and name in world.numbers:
            self.blocked.add(name)
            world.step(Block(world.numbers[name]))
        elif what == "unblock" and name in world.numbers:
            self.blocked.discard(name)
            world.step(Unblock(world.numbers[name]))
        elif what in ("ack", "front", "end") and self.in_hand:
            message_id = list(self.in_hand)[number % len(self.in_hand)]
            name = self.in_hand.pop(message_id)
            if what == "ack":
                self.done.add(message_id)
                world.ack(name, message_id)
            else:
                at_front = what == "front"
                line = self.waiting[int(message_id[0])]
                line.insert(0 if at_front else len(line), message_id)
                world.release(name, message_id, PUT_BACK_START if at_front else PUT_BACK_END)
        self.follow()

    def follow(self) -> None:
        for _ in range(2_000):
            for effect in self.world.last:
                if isinstance(effect, Deliver):
                    self._delivered(effect)
            due = self.world.broker.next_deadline()
            if due is None or due > self.world.now:
                break
            self.world.told(self.world.broker.on_deadline(self.world.now))
        ready = [name for name in self.joined if name not in self.blocked]
        for line in self.waiting.values():
            assert not [each for each in line for name in ready if self.wants(name, each)]

    def _delivered(self, effect: Deliver) -> None:
        (number,) = effect.sessions
        name, message_id = self.world.names[number], effect.message.message_id
        assert name in self.joined
        assert name not in self.blocked
        mine = [
            each
            for level in range(9, -1, -1)
            for each in self.waiting[level]
            if self.wants(name, each)
        ]
        assert mine[:1] == [message_id], f"{name} gets {message_id}, but {mine[0]} is before"
        self.waiting[int(message_id[0])].remove(message_id)
        self.in_hand[message_id] = name


ACTS = ["push", "push", "push", "join", "leave", "block", "unblock", "ack", "front", "end"]


@settings(max_examples=120)
@given(
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(ACTS), st.integers(0, 5), st.integers(0, 9)),
        min_size=20,
        max_size=60,
    ),
)
def test_everybody_gets_the_highest_first(chooses: bool, acts: list[tuple[str, int, int]]) -> None:
    model = Model(chooses)
    for name in CLIENTS:
        model.act("join", CLIENTS.index(name), 0)
        model.act("block", CLIENTS.index(name), 0)
    for what, number, level in acts:
        model.act(what, number, level)
    for number in range(3):
        model.act("join", number, 0)
        model.act("unblock", number, 0)
    assert len(model.done) + len(model.in_hand) == model.pushed, "nothing is lost"


# --- One by one ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [STATUS_ROUND_ROBIN, STATUS_PUSH])
@pytest.mark.parametrize("keys", [NO_KEYS, STICKY, STRICT])
def test_jms_order(status: int, keys: str) -> None:
    world = world_of(status, group_keys=keys)
    push(world, "4a", "1a", "9a", "0a", "7a", "4b", "9b", "5a", "0b")
    assert got(world.join("c")) == ["9a", "9b", "7a", "5a", "4a", "4b", "1a", "0a", "0b"]


@pytest.mark.parametrize("keys", [NO_KEYS, STICKY, STRICT])
def test_what_nobody_has_looked_at_goes_before_what_is_parked_of_a_lower_priority(
    keys: str,
) -> None:
    world = world_of(group_keys=keys)
    world.join("b", filter=Kinds("x"))
    world.join("c", filter=Kinds("yz"))
    busy(world, "c")
    push(world, "1y", "6y", "2z")
    assert not world.queue().flights
    busy(world, "b")
    push(world, "3y", "7y", "6z", "0y")
    assert got(world.step(Unblock(world.numbers["c"]))) == [
        "7y",
        "6y",
        "6z",
        "3y",
        "2z",
        "1y",
        "0y",
    ]


def test_a_pull_gets_the_highest_first() -> None:
    world = world_of(STATUS_PULL)
    push(world, "4a", "1a", "9a", "7a", "4b")
    world.join("c")
    found: list[str] = []
    for _ in range(5):
        world.pull("c", 1)
        found += [each.message.message_id for each in world.last if isinstance(each, DeliverPulled)]
    assert found == ["9a", "7a", "4a", "4b", "1a"]


def test_what_makes_way_is_the_oldest_of_the_lowest() -> None:
    world = world_of(STATUS_PAUSED, message_limit=3, when_full="drop-oldest")
    push(world, "4a", "2a", "2b", "4b")
    assert [each.message_id for each in world.queue().regular.messages()] == ["4a", "4b", "2b"]
    push(world, "9a", "8a", "8b", "9b")
    assert [each.message_id for each in world.queue().high.messages()] == ["9a", "9b", "8b"]
    assert world.queue().waiting_count() == 3


def test_those_of_a_key_go_by_priority_when_their_turn_comes() -> None:
    world = world_of(group_keys=STRICT)
    world.join("c")
    push(world, "1k-1", "2k-2", "8k-3", "4k-4", "3l-5", "7k-6")
    assert sorted(world.queue().flights) == ["1k-1", "3l-5"]
    order: list[str] = []
    words = world.ack("c", "1k-1")
    while got(words):
        (next_one,) = got(words)
        order.append(next_one)
        words = world.ack("c", next_one)
    assert order[0] == "8k-3"
    assert sorted(order) == ["2k-2", "4k-4", "7k-6", "8k-3"]


def test_a_sticky_key_waits_for_its_owner_and_others_pass() -> None:
    world = world_of(group_keys=STICKY)
    world.join("a")
    world.join("b")
    push(world, "4k-1")
    (owner,) = {holder.client_id for holder in [world.queue().flights["4k-1"].holder] if holder}
    other = "b" if owner == "a" else "a"
    busy(world, owner)
    push(world, "1k-2", "9k-3", "3x")
    assert sent(world.step(Block(world.numbers[other]))) == []
    push(world, "2y", "8z")
    assert got(world.step(Unblock(world.numbers[other]))) == ["8z", "2y"]
    assert got(world.step(Unblock(world.numbers[owner]))) == ["9k-3", "1k-2"]


def test_an_expired_or_deferred_message_keeps_its_priority() -> None:
    world = world_of()
    world.connect("p")
    for each, extras in (
        ("4a", PushExtras(expires_in_ms=500)),
        ("9b", PushExtras(delay_ms=1_000)),
        ("3c", None),
        ("9d", PushExtras(expires_in_ms=500)),
        ("6e", PushExtras(delay_ms=1_000)),
    ):
        world.push(each, high=each[0] > "4", extras=extras)
    world.wait(2)
    assert got(world.join("c")) == ["9b", "6e", "3c"]


def test_what_waits_keeps_its_place_when_priorities_begin_and_end_to_count() -> None:
    world = world_of(STATUS_PAUSED)
    world.update(QueueChanges(priorities=TWO))
    push(world, "1a", "2a")
    world.update(QueueChanges(priorities=TEN))
    push(world, "1b", "3b", "2b")
    world.update(QueueChanges(priorities=TWO))
    push(world, "1c", "4c")
    world.update(QueueChanges(status=STATUS_ROUND_ROBIN))
    assert sorted(got(world.join("c"))) == ["1a", "1b", "1c", "2a", "2b", "3b", "4c"]


def test_what_no_door_can_read_has_the_usual_priority() -> None:
    world = world_of()
    push(world, "4a")
    world.push("x1")
    world.push("y1", high=True)
    push(world, "3c", "8d")
    assert got(world.join("c")) == ["y1", "8d", "4a", "x1", "3c"]


def test_priorities_count_after_a_restart_and_from_the_disk_as_far_as_it_is_read() -> None:
    world = KeptWorld()
    world.broker.know_wires(Digits())
    changes = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True, priorities=TEN, memory_limit=4)
    world.create(changes)
    world.sync()
    push(world, "4a", "1a", "9a", "2a", "3a", "0a")
    world.sync()
    world.crash()
    world.broker.know_wires(Digits())
    assert world.queue().options.priorities == TEN
    found = got(world.join("c") + world.sync())
    assert found[:2] == ["9a", "4a"]
    assert sorted(found) == ["0a", "1a", "2a", "3a", "4a", "9a"]
