"""Looking into queues: what is shown, in which order, in portions, and that nothing changes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TypeAlias

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_PULL, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import Browse, PushExtras
from tmqp_server.engine.effects import Effect, Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.snapshots import (
    BROWSED_ALL,
    BROWSED_DEFERRED,
    BROWSED_IN_FLIGHT,
    BROWSED_WAITING,
    BrowsedMessage,
    BrowseSnapshot,
)
from tmqp_server.engine.options import QueueChanges
from tmqp_server.engine.reading import browsing
from tmqp_sim.books import shelved_in

LATER = PushExtras(delay_ms=60_000)
PULLED = QueueChanges(status=STATUS_PULL)


#: What a look may ask for.
Wanted: TypeAlias = int | str | SubscriptionFilter | None


class Looks:
    """Asks a world, and keeps the answers, which the world puts into words only."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: list[Reply] = []
        told = world.told

        def noting(effects: list[Effect]) -> list[str]:
            self.answers += [
                each for each in effects if isinstance(each, Reply) and each.request == "browse"
            ]
            return told(effects)

        world.told = noting  # type: ignore[method-assign]
        if "viewer" not in world.numbers:
            world.connect("viewer")

    def ask(
        self,
        first: int = 0,
        limit: int = 0,
        max_bytes: int = 0,
        states: int = BROWSED_ALL,
        message_id: str = "",
        filter: SubscriptionFilter | None = None,
    ) -> Reply | None:
        """The answer, when it comes at once or with what the storage says."""
        self.answers.clear()
        number = self.world.numbers["viewer"]
        self.world.step(
            Browse(number, "browse", "ch", 1, first, limit, max_bytes, states, message_id, filter)
        )
        self.world.finish()
        for _ in range(100):  # it may have to look on behind what the storage has looked at
            if self.answers or not isinstance(self.world, KeptWorld):
                break
            self.world.fetch()
            self.world.finish()
        return self.answers[0] if self.answers else None

    def items(self, **wanted: Wanted) -> list[BrowsedMessage]:
        """What one look shows."""
        answer = self.ask(**wanted)  # type: ignore[arg-type]
        assert answer is not None
        assert answer.code == 0
        assert isinstance(answer.body, BrowseSnapshot)
        return answer.body.items

    def ids(self, **wanted: Wanted) -> list[str]:
        return [item.message_id for item in self.items(**wanted)]

    def everything(
        self, limit: int, filter: SubscriptionFilter | None = None
    ) -> Iterator[BrowsedMessage]:
        """Portion by portion."""
        first = 0
        while items := self.items(first=first, limit=limit, filter=filter):
            yield from items
            first = items[-1].sequence + 1


def state_of_queue(queue: Queue) -> list[object]:
    """All that a look must leave as it is."""
    return [
        [each.sequence for each in queue.high.messages()],
        [each.sequence for each in queue.regular.messages()],
        sorted(each.sequence for each in queue.deferred.messages()),
        sorted((each.sequence, each.place) for each in shelved_in(queue)),
        list(queue.flights),
        queue.spilled,
        queue.count,
        queue.bytes,
    ]


def test_every_place_is_shown_with_what_is_known_of_its_messages() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN, message_timeout_ms=90_000))
    world.join("a", credit=1)
    world.push("out")
    world.push("high", high=True, wants=True)
    world.push("late", extras=LATER)
    world.push("waits")
    before = state_of_queue(world.queue())
    shown = Looks(world).items()
    assert [(item.message_id, item.state) for item in shown] == [
        ("out", BROWSED_IN_FLIGHT),
        ("high", BROWSED_WAITING),
        ("late", BROWSED_DEFERRED),
        ("waits", BROWSED_WAITING),
    ]
    assert [item.attempts for item in shown] == [1, 0, 0, 0]
    assert [item.high_priority for item in shown] == [False, True, False, False]
    assert [item.wants_confirm for item in shown] == [False, True, False, False]
    assert shown[2].due_s == world.now + 60.0
    assert shown[3].expires_s == world.now + 90.0
    assert shown[0].message.wire == "wire of out"
    assert state_of_queue(world.queue()) == before


def test_a_message_that_was_given_back_for_a_time_now_past_was_shown_as_deferred() -> None:
    """Another consumer had it for longer."""
    world = World()
    world.create(QueueChanges(status=STATUS_PUSH))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.release("a", "m1", delay_ms=300)
    world.wait(0.5)
    world.update(PULLED)
    world.release("b", "m1")
    assert [(item.state, item.due_s) for item in Looks(world).items()] == [(BROWSED_WAITING, None)]


def test_a_look_is_filtered_by_place_and_id() -> None:
    world = World()
    world.create(PULLED)
    for number in range(6):
        world.push(f"m{number % 3}", extras=LATER if number % 2 else None)
    looks = Looks(world)
    assert looks.ids(states=BROWSED_WAITING) == ["m0", "m2", "m1"]
    assert looks.ids(states=BROWSED_DEFERRED) == ["m1", "m0", "m2"]
    assert looks.ids(states=BROWSED_IN_FLIGHT) == []
    assert [item.sequence for item in looks.items(message_id="m1")] == [2, 5]
    assert looks.ids(message_id="m1", states=BROWSED_WAITING, limit=1) == ["m1"]


class Short(SubscriptionFilter):
    """Takes messages with short ids."""

    def accepts(self, message: Message) -> bool:
        return len(message.message_id) < 3


def test_messages_that_no_consumer_accepts_are_shown() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN))
    world.join("a", filter=Short())
    for message_id in ("long-1", "m1", "long-2", "m2"):
        world.push(message_id)
    looks = Looks(world)
    assert looks.ids(states=BROWSED_WAITING) == ["long-1", "long-2"]
    assert looks.ids() == ["long-1", "m1", "long-2", "m2"]


class Odd(SubscriptionFilter):
    """Takes messages whose ids end in an odd number."""

    def __init__(self) -> None:
        self.looked_at = 0

    def accepts(self, message: Message) -> bool:
        self.looked_at += 1
        return int(message.message_id[-1]) % 2 == 1


class Broken(SubscriptionFilter):
    """Cannot say which it takes."""

    def accepts(self, message: Message) -> bool:
        raise ValueError(message)


def test_a_look_shows_what_passes_its_filter() -> None:
    world = World()
    world.create(PULLED)
    for number in range(10):
        world.push(f"m{number}", extras=LATER if number > 6 else None)
    looks = Looks(world)
    assert looks.ids(filter=Odd()) == ["m1", "m3", "m5", "m7", "m9"]
    assert looks.ids(filter=Odd(), states=BROWSED_DEFERRED) == ["m7", "m9"]
    assert looks.ids(filter=Odd(), message_id="m4") == []
    assert [item.message_id for item in looks.everything(2, Odd())] == looks.ids(filter=Odd())
    only = Odd()
    assert looks.ids(filter=only, message_id="m3") == ["m3"]
    assert only.looked_at == 1
    assert looks.ids(filter=Broken()) == []
    errors = world.queue().counters.errors
    assert errors == 0  # that of a consumer counts; who looks changes nothing


@pytest.mark.parametrize("most", [2, 5, 1_000])
def test_a_filter_finds_what_is_far_behind_on_the_disk(most: int) -> None:
    world = KeptWorld(EngineLimits(max_browse_messages=most))
    world.create(QueueChanges(status=STATUS_PULL, durable=True, memory_limit=2))
    for number in range(40):
        world.push(f"m{number}0" if number < 37 else f"m{number}1")
    for number in range(4):
        world.push(f"late-{number}", extras=LATER)
    world.sync()
    looks = Looks(world)
    shown = [item.message_id for item in looks.everything(1_000, Odd())]
    assert shown == ["m371", "m381", "m391", "late-1", "late-3"]


def test_a_filter_looks_into_few_messages_a_step() -> None:
    world = World()
    world.create(PULLED)
    count = 3 * browsing._FILTERED_PORTION
    for number in range(count):
        world.push(f"m{number}")
    world.connect("viewer")
    odd = Odd()
    number = world.numbers["viewer"]
    effects = world.broker.step(
        Browse(number, "browse", "ch", 1, 0, 0, 0, BROWSED_ALL, "", odd), world.now
    )
    most = odd.looked_at
    while world.broker.next_deadline() == world.now:
        before = odd.looked_at
        effects += world.broker.on_deadline(world.now)
        most = max(most, odd.looked_at - before)
    assert most <= browsing._FILTERED_PORTION
    assert odd.looked_at == count
    assert len(effects) == 1


def test_portions_follow_one_another() -> None:
    world = World(EngineLimits(max_browse_messages=4))
    world.create(PULLED)
    for number in range(10):
        world.push(f"m{number}", size=100)
    looks = Looks(world)
    assert len(looks.items()) == 4
    assert [item.sequence for item in looks.everything(3)] == list(range(1, 11))
    assert looks.ids(max_bytes=250) == ["m0", "m1"]
    assert looks.ids(max_bytes=1) == ["m0"]  # one at least
    assert looks.ids(first=11) == []


def test_answers_that_are_none() -> None:
    world = World()
    looks = Looks(world)
    answer = looks.ask()
    assert answer is not None
    assert answer.code == 404
    world.create(PULLED)
    assert looks.ids() == []


def test_producers_are_hidden_where_the_queue_hides_them() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL, hide_client_names=True))
    world.push("m1")
    answer = Looks(world).ask()
    assert answer is not None
    assert isinstance(answer.body, BrowseSnapshot)
    assert answer.body.hide_source


def test_what_waits_on_disk_is_shown_in_its_place() -> None:
    world = KeptWorld()
    world.create(QueueChanges(status=STATUS_PULL, durable=True, memory_limit=3))
    for number in range(12):
        world.push(f"m{number}", high=number % 4 == 0, extras=LATER if number == 5 else None)
    world.sync()
    before = state_of_queue(world.queue())
    assert world.queue().spilled
    looks = Looks(world)
    for limit in (1, 2, 5, 100):
        shown = list(looks.everything(limit))
        assert sorted(item.message_id for item in shown) == sorted(f"m{n}" for n in range(12))
        assert [item.sequence for item in shown] == sorted(item.sequence for item in shown)
    assert looks.ids(states=BROWSED_DEFERRED) == ["m5"]
    assert looks.ids(message_id="m11") == ["m11"]
    assert state_of_queue(world.queue()) == before
    world.crash()
    looks = Looks(world)
    shown = list(looks.everything(4))
    assert {item.message_id: item.state for item in shown} == {
        f"m{n}": BROWSED_DEFERRED if n == 5 else BROWSED_WAITING for n in range(12)
    }


def test_a_message_that_goes_while_somebody_looks_is_left_out() -> None:
    world = World(EngineLimits(max_browse_messages=3))
    world.create(PULLED)
    for number in range(4):
        world.push(f"m{number}")
    world.join("a")
    world.pull("a", 2)
    world.ack("a", "m0")
    world.ack("a", "m1")
    assert Looks(world).ids() == ["m2", "m3"]


def test_a_large_queue_is_looked_through_in_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    if not browsing.__file__.endswith(".py"):
        pytest.skip("what is compiled cannot be patched")
    monkeypatch.setattr(browsing, "_PORTION", 7)
    world = World()
    world.create(PULLED)
    for number in range(50):
        world.push(f"m{number}", extras=LATER if number % 3 == 0 else None)
    looks = Looks(world)
    number = world.numbers["viewer"]
    command = Browse(number, "browse", "ch", 1, 0, 0, 0, BROWSED_ALL, "")
    effects = world.broker.step(command, world.now)
    assert effects == []
    steps = 0
    while world.broker.next_deadline() == world.now:
        steps += 1
        effects += world.broker.on_deadline(world.now)
    assert steps > 5
    (reply,) = effects
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, BrowseSnapshot)
    assert [item.sequence for item in reply.body.items] == list(range(1, 51))
    assert looks.ids(limit=2) == ["m0", "m1"]
    world.check([])


def test_who_looks_already_and_one_too_many_are_busy() -> None:
    world = KeptWorld(EngineLimits(max_browses=1))
    world.create(QueueChanges(status=STATUS_PULL, durable=True, memory_limit=1))
    for number in range(6):
        world.push(f"m{number}")
    world.sync()
    looks = Looks(world)
    world.connect("other")
    number = world.numbers["viewer"]
    look = Browse(number, "browse", "ch", 1, 0, 0, 0, BROWSED_ALL, "")
    assert [word for word in world.step(look) if "browse" in word] == []
    assert world.step(look) == ["viewer browse: 503"]
    other = Browse(world.numbers["other"], "browse", "ch", 1, 0, 0, 0, BROWSED_ALL, "")
    assert world.step(other) == ["other browse: 503"]
    charged = world.broker._browsing.charged()
    assert charged > 0
    world.disconnect("viewer")
    assert world.broker._browsing.charged() == 0
    world.fetch()  # for nobody
    assert looks.answers[0].code == 503
    assert world.step(other) != ["other browse: 503"]


@pytest.mark.parametrize("seed", range(12))
def test_looks_do_as_a_list_does(seed: int) -> None:
    """Random histories; each look in random portions shows what the places hold, and no more."""
    draw = random.Random(seed)
    durable = draw.random() < 0.5
    world: World = KeptWorld() if durable else World()
    status = draw.choice([STATUS_PULL, STATUS_PUSH, STATUS_ROUND_ROBIN])
    world.create(QueueChanges(status=status, durable=durable or None, memory_limit=4))
    world.join("a", credit=5)
    looks = Looks(world)
    for step in range(120):
        what = draw.random()
        if what < 0.6:
            extras = PushExtras(delay_ms=draw.choice([500, 5_000])) if what < 0.2 else None
            world.push(f"m{step}", high=draw.random() < 0.3, extras=extras)
        elif what < 0.7 and status == STATUS_PULL:
            world.pull("a", draw.randrange(1, 4))
        elif what < 0.8:
            for message_id in list(world.queue().flights)[:2]:
                world.ack("a", message_id)
        elif what < 0.85:
            world.wait(0.6)
        else:
            if isinstance(world, KeptWorld):
                world.sync()
            queue = world.queue()
            before = state_of_queue(queue)
            shown = list(looks.everything(draw.choice([1, 3, 1_000])))
            odd = list(looks.everything(draw.choice([1, 3, 1_000]), Odd()))
            assert [item.message_id for item in odd] == [
                item.message_id for item in shown if int(item.message_id[-1]) % 2
            ]
            assert state_of_queue(queue) == before
            assert [item.sequence for item in shown] == sorted({item.sequence for item in shown})
            flying = [item.message_id for item in shown if item.state == BROWSED_IN_FLIGHT]
            assert sorted(flying) == sorted(queue.flights)
            late = [item.message_id for item in shown if item.state == BROWSED_DEFERRED]
            deferred = [each.message_id for each in queue.deferred.messages()]
            deferred += [each.message_id for each in shelved_in(queue)]
            assert sorted(late) == sorted(deferred)
            waiting = len(shown) - len(flying) - len(late)
            assert waiting == queue.high_count + queue.regular_count + queue.spilled
