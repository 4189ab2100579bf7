"""Feeds beside a plain model: each accepted message is copied once to each feed that wants it.

Random histories of pushes, pauses, small targets, consumers that come and go, answers, feeds that
are added and removed, and a storage that is written to now and then, fails, or is cut off.  What a
target ever had is what the model says: nothing is lost, made twice, or out of order.
"""

from __future__ import annotations

import random

import pytest

from tests.tmqp_server.engine.feeds import Begins, each_waiting, feed, unfeed
from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_PAUSED, STATUS_PUSH
from tmqp_server.engine.core import PendingSave
from tmqp_server.engine.effects import Confirm, Deliver, Effect
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges

TARGETS = ("a", "b", "c")
STEPS = 120


class Expected:
    """What each target should have had, in order, and what waits for a feed."""

    def __init__(self) -> None:
        self.feeds: dict[str, str] = {}
        self.copied: dict[str, list[str]] = {name: [] for name in TARGETS}
        self.kept: list[str] = []
        self.paused = False

    def push(self, message_id: str) -> None:
        self.kept.append(message_id)
        self.go_on()

    def go_on(self) -> None:
        """All that is kept goes to all feeds, as far as anybody can tell in the end."""
        if self.paused or not self.feeds:
            return
        for message_id in self.kept:
            for name, begins in self.feeds.items():
                if message_id.startswith(begins):
                    self.copied[name].append(message_id)
        self.kept = []


class Taken:
    """What consumers of the targets have had for the first time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.of: dict[str, list[str]] = {name: [] for name in TARGETS}
        self.in_hand: list[tuple[str, str]] = []
        self.confirmed: set[str] = set()
        self.seen = 0

    def look(self) -> None:
        for effect in self.world.last:
            if isinstance(effect, Deliver) and effect.channel in self.of:
                message_id = effect.message.message_id
                self.in_hand.append((effect.channel, message_id))
                if message_id not in self.of[effect.channel]:
                    self.of[effect.channel].append(message_id)
            elif isinstance(effect, Confirm) and effect.positive:
                self.confirmed.add(effect.message_id)


class Watching(KeptWorld):
    """A world that shows all effects to what was taken."""

    taken: Taken

    def told(self, effects: list[Effect]) -> list[str]:
        words = super().told(effects)
        if hasattr(self, "taken"):
            self.taken.look()
        return words


def started(draw: random.Random, source: bool, targets: bool) -> Watching:
    """A topic and three queues, some of them small; which of them are durable."""
    world = Watching(EngineLimits(max_work_per_step=draw.choice([20, 1_000])))
    world.create(QueueChanges(status=STATUS_PUSH, durable=source), "t")
    for name in TARGETS:
        limit = draw.choice([0, 0, 2])
        world.create(QueueChanges(durable=targets, message_limit=limit), name)
    world.connect("p")
    world.sync()
    world.taken = Taken(world)
    return world


def settle(world: Watching) -> None:
    """Let everything come to rest, with consumers everywhere that take all there is."""
    world.update(QueueChanges(status=STATUS_PUSH), "t")
    for name in TARGETS:
        world.update(QueueChanges(status=STATUS_PUSH, message_limit=0), name)
        if f"x{name}" not in world.numbers:
            world.join(f"x{name}", name)
    for _ in range(40):
        world.sync()
        world.wait(0.05)
        answer(world, 1_000)


def answer(world: Watching, most: int) -> None:
    """Acknowledge what consumers have in hand."""
    for _ in range(most):
        if not world.taken.in_hand:
            return
        channel, message_id = world.taken.in_hand.pop(0)
        if f"x{channel}" in world.numbers:
            world.ack(f"x{channel}", message_id, channel)


@pytest.mark.parametrize(
    ("source", "targets"),
    [(False, False), (True, True), (False, True)],
    ids=["memory", "durable", "only the targets are durable"],
)
@pytest.mark.parametrize("seed", range(15))
def test_each_feed_gets_what_it_wants_once_and_in_order(
    seed: int, source: bool, targets: bool
) -> None:
    draw = random.Random(seed)
    world = started(draw, source, targets)
    model = Expected()
    for number in range(STEPS):
        what = draw.random()
        name = draw.choice(TARGETS)
        if what < 0.5:
            message_id = f"{draw.choice('gh')}{number}"
            world.push(message_id, channel="t", wants=True)
            model.push(message_id)
        elif what < 0.6 and not busy(world):
            if name in model.feeds:
                unfeed(world, name)
                del model.feeds[name]
            else:
                begins = draw.choice(["", "g"])
                feed(world, name, chosen=Begins(begins) if begins else None)
                model.feeds[name] = begins
                model.go_on()
        elif what < 0.7:
            model.paused = not model.paused
            status = STATUS_PAUSED if model.paused else STATUS_PUSH
            world.update(QueueChanges(status=status), "t")
            model.go_on()
        elif what < 0.75 and f"x{name}" not in world.numbers:
            world.join(f"x{name}", name)
        elif what < 0.85:
            answer(world, 3)
        elif targets and what < 0.9 and not (source and is_new(world)):
            world.write("no space")  # what was confirmed is moving, or settled, or a copy of it new
            world.state(True)
        else:
            world.sync()
            world.wait(0.05)
    model.paused = False
    model.go_on()
    settle(world)
    assert world.taken.of == model.copied
    assert each_waiting(world, "t") == [model.kept]


def busy(world: Watching) -> bool:
    """Whether a copy is on its way: then a feed that comes or goes gets it, or does not."""
    world.sync()
    world.wait(0.05)
    queue = world.queue("t")
    return bool(queue.waiting_count() and queue.feeds) or queue.committing


def is_new(world: Watching) -> bool:
    """Whether a message is being saved whose producer would be told that it cannot be."""
    tickets = world.broker._core.tickets.values()
    return any(isinstance(ticket, PendingSave) for ticket in tickets)


@pytest.mark.parametrize("seed", range(25))
def test_a_killed_server_neither_loses_nor_doubles(seed: int) -> None:
    """Nothing is consumed, so all that was confirmed is there, once in each target."""
    draw = random.Random(seed)
    world = Watching(EngineLimits(max_work_per_step=draw.choice([20, 1_000])))
    world.create(QueueChanges(status=STATUS_PUSH, durable=True), "t")
    for name in TARGETS:
        limit = draw.choice([0, 3])
        world.create(QueueChanges(status=STATUS_PAUSED, durable=True, message_limit=limit), name)
    world.connect("p")
    fed = TARGETS[: draw.randrange(4)]
    for name in fed:
        feed(world, name)
    world.sync()
    world.taken = Taken(world)
    pushed: list[str] = []
    for number in range(40):
        what = draw.random()
        if what < 0.6:
            pushed.append(f"m{number}")
            world.push(pushed[-1], channel="t", wants=True)
        elif what < 0.7:
            world.update(QueueChanges(status=draw.choice([STATUS_PAUSED, STATUS_PUSH])), "t")
        elif what < 0.8:
            world.write()
        elif what < 0.85:
            name = draw.choice(TARGETS)
            world.update(QueueChanges(message_limit=0), name)
        else:
            world.fetch()
            world.wait(0.03)
    world.crash()
    world.connect("admin", "p")
    for name in TARGETS:
        if not any(each.target is world.queue(name) for each in world.queue("t").feeds or ()):
            feed(world, name)
        world.update(QueueChanges(message_limit=0), name)
    world.update(QueueChanges(status=STATUS_PUSH), "t")
    for _ in range(10):
        world.sync()
        world.wait(0.05)
    assert each_waiting(world, "t") == [[]]
    found = each_waiting(world, *TARGETS)
    for had in found:
        assert len(had) == len(set(had))
        assert had == [each for each in pushed if each in set(had)]
    # What waited for somebody to come goes to the first feed.
    for had in found[: max(len(fed), 1)]:
        assert world.taken.confirmed <= set(had)
