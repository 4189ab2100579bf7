"""Runs through feeds: taken together they leave what as many pushes leave."""

from __future__ import annotations

import random

import pytest

from tests.tmqp_server.engine.feeds import Begins, each_waiting, feed, waiting_in
from tests.tmqp_server.engine.kept import KeptWorld
from tmqp.constants import STATUS_BROADCAST, STATUS_PAUSED, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import Join, Push, PushRun, RunNotes, RunWire
from tmqp_server.engine.effects import (
    AppendRun,
    ConfirmRun,
    Deliver,
    DeliverRun,
    Effect,
    EraseRun,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import MARK_TOGETHER
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import QueueChanges
from tmqp_server.storage.stored_runs import StoredRun

TARGETS = ("a", "b", "c")
SIZE = 10


class Ids(RunWire):
    """Messages with these ids."""

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids

    def pushes(self, run: PushRun) -> list[Push]:
        return [
            Push(run.session, each, run.channel, run.queue_id, run.high_priority, run.wants_confirm,
                 SIZE, f"wire of {each}", None)
            for each in self.ids
        ]  # fmt: skip

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        return self.ids, [SIZE] * len(self.ids), [f"wire of {each}" for each in self.ids]


class RunWorld(KeptWorld):
    """Takes pushes in a row as runs, or not; what it tells are single effects in any case."""

    def __init__(self, limits: EngineLimits | None = None, *, runs: bool = True) -> None:
        self.runs = runs
        #: By client, what was sent to it.
        self.heard: dict[str, list[str]] = {}
        self.divided = 0
        super().__init__(limits)

    def told(self, effects: list[Effect]) -> list[str]:
        singles: list[Effect] = []
        for effect in effects:
            if isinstance(effect, (AppendRun, EraseRun)):
                self.journal.run(effect, self.now)
            elif isinstance(effect, DeliverRun):
                singles += effect.deliveries()
            elif isinstance(effect, ConfirmRun):
                singles += effect.confirms()
            else:
                singles.append(effect)
        for effect in singles:
            if isinstance(effect, Deliver):
                message = effect.message
                assert message.readdressed or effect.channel == "t"
                assert (message.channel, message.queue_id) == (effect.channel, 1)
                for number in effect.sessions:
                    words = f"{effect.channel} {message.message_id} {effect.first_acquirer}"
                    self.heard.setdefault(self.names[number], []).append(words)
        return super().told(singles)

    def row(self, ids: list[str], *, wants: bool = False, high: bool = False) -> list[str]:
        """Push messages in a row into the source."""
        number = self.numbers["p"]
        size = SIZE * len(ids)
        run = PushRun(number, "t", 1, high, wants, len(ids), size, SIZE, Ids(ids), RunNotes())
        words: list[str] = []
        if self.runs:
            words = self.step(run)
            self.divided += run.notes.divided
        else:
            for push in run.pushes():
                words += self.step(push)
        return words


def begun(
    *targets: str,
    runs: bool = True,
    source: QueueChanges | None = None,
    target: QueueChanges | None = None,
) -> RunWorld:
    """A source and what it feeds."""
    world = RunWorld(runs=runs)
    world.connect("p")
    world.create(QueueChanges(status=STATUS_PUSH) if source is None else source, "t")
    for name in targets:
        plain = QueueChanges(status=STATUS_ROUND_ROBIN)
        world.create(plain if target is None else target, name)
        feed(world, name)
    world.sync()
    return world


def state_of(queue: Queue) -> list[object]:
    """All that is known of a queue and its messages."""
    counters = queue.counters
    messages = [*queue.high.messages(), *queue.regular.messages(), *queue.all_flights().values()]
    return [
        {name: getattr(counters, name) for name in type(counters).__slots__},
        (queue.count, queue.bytes, queue.disk_bytes, queue.sequence, queue.appended, queue.turn),
        [
            (
                each.message_id, each.marks & ~MARK_TOGETHER, each.sequence, each.attempts,
                each.channel, each.wire, None if each.holder is None else each.holder.number,
            )
            for each in messages
        ],
        [(each.copied, each.passed, each.skipped) for each in queue.feeds or ()],
    ]  # fmt: skip


def compare(script: list[tuple[str, int, int]], worlds: list[RunWorld]) -> None:
    """Play a script in both worlds, and look at them after each line."""
    for number, (what, count, kind) in enumerate(script):
        name = TARGETS[kind % 3]
        for world in worlds:
            ids = [f"m{number}.{place}" for place in range(count)]
            if kind == 7 and count > 1:
                ids[-1] = ids[0]
            if what == "push":
                world.row(ids, wants=kind % 2 == 0, high=kind == 5)
            elif what == "join" and f"x{count % 3}" not in world.numbers:
                terms = Terms(window=kind) if kind else None
                world.connect(f"x{count % 3}")
                joiner = world.numbers[f"x{count % 3}"]
                world.step(Join(joiner, "join", name, -1, None, terms))
            elif what == "answer":
                for key in list(world.queue(name).flights)[:count]:
                    holder = world.queue(name).flights[key].holder
                    assert holder is not None
                    world.ack(world.names[holder.number], key, name)
            elif what == "pause":
                status = STATUS_PAUSED if count % 2 else STATUS_PUSH
                world.update(QueueChanges(status=status), "t")
            elif what == "fail":
                world.write("no space")
            else:
                world.sync()
                world.wait(0.05)
        single, together = worlds
        assert single.heard == together.heard
        assert single.confirmed == together.confirmed
        for channel in ("t", *TARGETS):
            assert state_of(single.queue(channel)) == state_of(together.queue(channel))


@pytest.mark.cold  # compiled counters do not list what they count
@pytest.mark.parametrize("targets", [False, True], ids=["", "targets durable"])
@pytest.mark.parametrize("source", [False, True], ids=["", "source durable"])
def test_runs_through_feeds_leave_what_single_pushes_would(source: bool, targets: bool) -> None:
    taken = divided = 0
    for seed in range(12):
        draw = random.Random(seed)
        words = ["push"] * 6 + ["join", "answer", "answer", "pause", "wait", "wait", "fail"]
        script = [(draw.choice(words), draw.randrange(1, 7), draw.randrange(8)) for _ in range(50)]
        worlds = []
        limits = [draw.choice([0, 0, 9]) for _ in TARGETS]
        handlers = [draw.choice(["ack-if-asked"] * 5 + ["putback-end"]) for _ in TARGETS]
        for runs in (False, True):
            world = begun(runs=runs, source=QueueChanges(status=STATUS_PUSH, durable=source))
            for place, name in enumerate(TARGETS[: 1 + seed % 3]):
                options = QueueChanges(
                    status=STATUS_ROUND_ROBIN, durable=targets, message_limit=limits[place],
                    delivery_handler=handlers[place], acknowledge_timeout_ms=60_000,
                )  # fmt: skip
                world.create(options, name)
                feed(world, name)
            for name in TARGETS[1 + seed % 3 :]:
                world.create(None, name)
            world.sync()
            worlds.append(world)
        compare(script, worlds)
        divided += worlds[1].divided
        taken += sum(what == "push" for what, _, _ in script) - worlds[1].divided
    assert taken > 50
    assert divided > 20


def test_a_run_passes_whole_and_each_target_deals_it() -> None:
    world = begun("a", "b")
    world.join("x", "a")
    world.join("y", "a")
    ids = [f"m{each}" for each in range(8)]
    run = PushRun(world.numbers["p"], "t", 1, False, True, 8, 80, 10, Ids(ids), RunNotes())
    effects = world.broker.step(run, world.now)
    assert [type(each) for each in effects] == [ConfirmRun, DeliverRun, DeliverRun]
    assert waiting_in(world, "b") == ids
    assert list(world.queue("a").flights) == ids
    assert world.books("t")["done"] == 8
    assert not run.notes.divided


def test_a_durable_run_is_kept_copied_and_forgotten_in_one_go() -> None:
    durable = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True)
    world = begun(
        "a", "b", source=QueueChanges(status=STATUS_PUSH, durable=True), target=durable
    )  # fmt: skip
    world.join("x", "a")
    ids = [f"m{each}" for each in range(4)]
    assert [word for word in world.row(ids, wants=True) if word.startswith("p:")] == []
    assert world.divided == 0
    assert world.write() == [f"p: {each} ok F" for each in ids]
    world.crash()
    world.fetch()
    assert each_waiting(world, "t", "a", "b") == [[], ids, ids]
    assert world.queue("b").regular.messages()[0].readdressed


def test_a_run_of_a_durable_source_that_cannot_be_saved_is_refused_with_its_copies() -> None:
    durable = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True)
    world = begun("a", source=QueueChanges(status=STATUS_PUSH, durable=True), target=durable)
    world.row(["m0", "m1"], wants=True)
    assert world.write("no space") == ["p: m0 no error F", "p: m1 no error F"]
    assert each_waiting(world, "t", "a") == [[], []]


def test_copies_of_a_run_in_memory_that_cannot_be_saved_are_saved_later() -> None:
    world = begun("a", target=QueueChanges(status=STATUS_ROUND_ROBIN, durable=True))
    assert world.row(["m0", "m1"], wants=True) == ["p: m0 ok F", "p: m1 ok F"]
    assert world.divided == 0
    world.write("no space")
    assert waiting_in(world, "a") == ["m0", "m1"]
    world.wait(0.05)
    world.sync()
    world.crash()
    world.fetch()
    assert waiting_in(world, "a") == ["m0", "m1"]


@pytest.mark.parametrize(
    "reason",
    ["filter", "small", "full", "consumer", "in turn", "timeout", "backlog", "many"],
)
def test_a_run_that_some_target_does_not_take_whole_is_divided(reason: str) -> None:
    source = QueueChanges(status=STATUS_ROUND_ROBIN if reason == "in turn" else STATUS_PUSH)
    world = begun("a", source=source)
    world.create(
        QueueChanges(
            status=STATUS_ROUND_ROBIN,
            message_limit=3 if reason == "full" else 0,
            message_size_limit=9 if reason == "small" else 0,
            message_timeout_ms=1_000 if reason == "timeout" else 0,
        ),
        "b",
    )
    feed(world, "b", chosen=Begins("m1") if reason == "filter" else None)
    if reason == "consumer":
        world.step(Join(world.numbers["p"], "join", "t"))
    if reason == "backlog":
        world.update(QueueChanges(status=STATUS_PAUSED), "t")
        world.push("first", channel="t")
    count = 5_000 if reason == "many" else 4
    world.row([f"m{each}" for each in range(count)])
    assert world.divided == 1


def test_a_run_into_a_broadcast_goes_through_its_feeds_whole() -> None:
    world = begun("a", source=QueueChanges(status=STATUS_BROADCAST))
    world.row(["m0", "m1"])
    assert world.divided == 0
    assert waiting_in(world, "a") == ["m0", "m1"]


def test_a_run_of_different_sizes_with_heads_alike_could_not_be_written() -> None:
    found = StoredRun(1, 3, 0, 0, 0, b"h1h22h333", [2, 3, 4], [1]).messages()
    assert [each.body for each in found] == [b"h1", b"h22", b"h333"]
    assert [each.payload_size for each in found] == [1, 2, 3]
    found = StoredRun(1, 2, 0, 0, 0, b"h1g2", [2], [1, 0]).messages()
    assert [each.payload_size for each in found] == [1, 2]
