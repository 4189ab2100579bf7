"""Queues that give each message to one consumer who wants it: nothing is lost, none passes another.

A plain model beside the broker: the messages that wait, in order.  Whatever is delivered must be
the first of them that its consumer takes, and what a step leaves must be for nobody who is ready.
"""

from __future__ import annotations

import itertools
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_BROADCAST, STATUS_PULL, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import Block, ClearMessages, Grant, PushExtras, Unblock
from tmqp_server.engine.effects import Deliver, DeliverPulled
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import ALLOW, Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import MARK_GONE, Message, SubscriptionFilter
from tmqp_server.engine.model.parking import ParkingList
from tmqp_server.engine.model.selection import MAX_FILTERS
from tmqp_server.engine.options import QueueChanges


class Kinds(SubscriptionFilter):
    """Takes messages whose id ends in one of these letters; equal ones are one filter."""

    def __init__(self, kinds: str) -> None:
        self.kinds = kinds
        self.asked = 0

    def accepts(self, message: Message) -> bool:
        self.asked += 1
        return message.message_id[-1] in self.kinds

    def identity(self) -> object:
        return self.kinds


class Keyed(Kinds):
    """The same, and it says what it looks at."""

    def family(self) -> object:
        return "last letter"

    def key_of(self, message: Message) -> object:
        return message.message_id[-1]


CLIENTS: Final = ("a", "b", "c", "d")
FILTERS: Final = ("x", "y", "xy", "z", "xyz", "")


def waiting_ids(world: World) -> list[list[str]]:
    queue = world.queue()
    for waiting in (queue.high, queue.regular):
        there = [
            each
            for part in waiting.snapshot()
            for each in part.messages()
            if not each.marks & MARK_GONE
        ]
        there.sort(key=lambda each: each.sequence)
        parked = sorted(waiting.messages(), key=lambda each: each.sequence)
        assert there == parked, "who looks at the queue sees what is parked, too"
    return [
        [each.message_id for each in waiting.messages()] for waiting in (queue.high, queue.regular)
    ]


class Model:
    """What waits, in order: high priority, regular."""

    def __init__(self, world: World, status: int, handler: str, kind: type[Kinds]) -> None:
        self.world = world
        self.status = status
        self.handler = handler
        self.kind = kind
        self.sends = True
        self.waiting: list[list[str]] = [[], []]
        self.filters: dict[str, str | None] = {}
        self.blocked: set[str] = set()
        self.high: set[str] = set()
        self.in_hand: dict[str, str] = {}

    # --- What happens ----------------------------------------------------------------------------

    def act(self, number: int, what: str, first: object, second: object) -> None:
        world = self.world
        if what == "push":
            self.push(f"m{number}{first}", second == 0)
        elif what == "join":
            chosen = None if second is None else str(second)
            self.filters[str(first)] = chosen
            world.join(str(first), filter=None if chosen is None else self.kind(chosen))
        elif what == "leave":
            self.filters.pop(str(first), None)
            world.leave(str(first))
        elif what == "block":
            world.step(Block(world.numbers[str(first)]))
            self.blocked.add(str(first))
        elif what == "unblock":
            self.blocked.discard(str(first))
            world.step(Unblock(world.numbers[str(first)]))
        elif what == "status":
            self.sends = first == STATUS_ROUND_ROBIN
            world.update(QueueChanges(status=self.status if self.sends else STATUS_PULL))
        elif what == "clear":
            admin = world.numbers["admin"]
            world.step(ClearMessages(admin, "clear", "ch", 1, bool(first), not first))
            self.waiting[0 if first else 1] = []
        elif what == "pull":
            self.pull(bool(first))
        elif self.in_hand:
            message_id = list(self.in_hand)[int(str(first)) % len(self.in_hand)]
            self.answer(message_id, what == "ack")
        else:
            world.last = []

    def push(self, message_id: str, high: bool) -> None:
        if high:
            self.high.add(message_id)
        self.list_of(message_id).append(message_id)
        self.world.push(message_id, high=high)

    def answer(self, message_id: str, positive: bool) -> None:
        name = self.in_hand.pop(message_id)
        if positive:
            self.world.ack(name, message_id)
            return
        if self.handler == "putback-start":
            self.list_of(message_id).insert(0, message_id)
        elif self.handler == "putback-end":
            self.list_of(message_id).append(message_id)
        self.world.nack(name, message_id)

    def pull(self, newest: bool) -> None:
        self.world.last = []
        if self.sends or not any(self.waiting) or "a" not in self.filters or "a" in self.blocked:
            return
        taken = (self.waiting[0] or self.waiting[1]).pop(-1 if newest else 0)
        self.world.pull("a", newest_first=newest)
        (pulled,) = [each for each in self.world.last if isinstance(each, DeliverPulled)]
        assert pulled.message.message_id == taken
        self.in_hand[taken] = "a"

    # --- What follows ----------------------------------------------------------------------------

    def list_of(self, message_id: str) -> list[str]:
        return self.waiting[0 if message_id in self.high else 1]

    def takes(self, name: str, message_id: str) -> bool:
        chosen = self.filters[name]
        return chosen is None or message_id[-1] in chosen

    def follow(self) -> None:
        """Take note of what the last step, and those after it, sent."""
        for _ in range(500):
            for effect in self.world.last:
                if isinstance(effect, Deliver):
                    self._delivered(effect)
            due = self.world.broker.next_deadline()
            if due is None or due > self.world.now:
                break
            self.world.told(self.world.broker.on_deadline(self.world.now))
        else:
            raise AssertionError("it does not come to an end")

    def _delivered(self, effect: Deliver) -> None:
        (number,) = effect.sessions
        name, message_id = self.world.names[number], effect.message.message_id
        assert name in self.filters
        assert name not in self.blocked
        assert self.takes(name, message_id)
        mine = self.list_of(message_id)
        before = mine[: mine.index(message_id)]
        if message_id not in self.high:
            before += self.waiting[0]
        assert not [each for each in before if self.takes(name, each)]
        mine.remove(message_id)
        self.in_hand[message_id] = name

    def check(self) -> None:
        """What is there is what is left, and nobody is there who would take any of it."""
        assert waiting_ids(self.world) == self.waiting
        queue = self.world.queue()
        assert (queue.high_count, queue.regular_count) == tuple(map(len, self.waiting))
        assert queue.imbalance() == 0
        for name in self.filters if self.sends else ():
            if name not in self.blocked:
                assert not [e for each in self.waiting for e in each if self.takes(name, e)]


ACTS = st.one_of(
    st.tuples(st.just("push"), st.sampled_from("xyzw"), st.integers(0, 4)),
    st.tuples(st.just("push"), st.sampled_from("xyzw"), st.integers(0, 4)),
    st.tuples(st.just("join"), st.sampled_from(CLIENTS), st.sampled_from((*FILTERS, None))),
    st.tuples(st.just("leave"), st.sampled_from(CLIENTS), st.none()),
    st.tuples(st.sampled_from(("block", "unblock")), st.sampled_from(CLIENTS), st.none()),
    st.tuples(st.sampled_from(("ack", "nack")), st.integers(0, 20), st.none()),
    st.tuples(st.just("status"), st.sampled_from((STATUS_PULL, STATUS_ROUND_ROBIN)), st.none()),
    st.tuples(st.just("pull"), st.booleans(), st.none()),
    st.tuples(st.just("clear"), st.booleans(), st.none()),
)


@settings(max_examples=150)
@given(
    st.lists(ACTS, max_size=60),
    st.sampled_from((1_000, 3, 1)),
    st.sampled_from(("putback-start", "putback-end", "ack-received")),
    st.sampled_from((Kinds, Keyed)),
    st.booleans(),
)
def test_none_is_lost_and_none_passes_another(
    script: list[tuple[str, object, object]],
    budget: int,
    handler: str,
    kind: type[Kinds],
    first_acquirer: bool,
) -> None:
    status = STATUS_PUSH if first_acquirer else STATUS_ROUND_ROBIN
    world = World(
        EngineLimits(max_work_per_step=budget),
        queue_defaults(
            status=status,
            request_acknowledge=True,
            send_only_first_acquirer=first_acquirer,
            delivery_handler=handler,
        ),
    )
    world.create()
    world.connect(*CLIENTS)
    model = Model(world, status, handler, kind)
    for number, (what, first, second) in enumerate(script):
        model.act(number, what, first, second)
        model.follow()
        model.check()


def test_each_filter_looks_at_a_message_once() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    first, second = Kinds("x"), Kinds("y")
    world.join("a", filter=first)
    world.step(Block(world.numbers["a"]))
    world.join("b", filter=second)
    for number in range(5):
        assert world.push(f"m{number}x") == []
    assert (first.asked, second.asked) == (5, 5)
    later = Kinds("x")  # the same filter again
    assert world.join("c", filter=later)[:5] == [f"c <- m{each}x FA" for each in range(5)]
    assert (first.asked, second.asked, later.asked) == (5, 5, 0)


def test_a_filter_that_comes_later_finds_what_waits() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    known = Kinds("x")
    world.join("a", filter=known)
    assert [world.push(f"m{number}y") for number in range(3)] == [[], [], []]
    assert world.join("b", filter=Kinds("y"))[:3] == ["b <- m0y FA", "b <- m1y FA", "b <- m2y FA"]
    assert known.asked == 3, "only the new filter looks again"
    assert world.books()["deliveries"] == 3


def test_a_bit_that_is_given_again_says_nothing_of_the_filter_before() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    world.join("a", filter=Kinds("x"))
    world.join("b", filter=Kinds("y"))
    world.step(Block(world.numbers["a"]))
    world.push("m1x")
    world.leave("a")
    assert world.join("c", filter=Kinds("y"))[:1] == ["c join: 0"]
    assert world.join("d", filter=Kinds("z")) == ["d join: 0"]
    assert world.join("e", filter=Kinds("x"))[0] == "e <- m1x FA"


def test_without_filters_what_was_parked_goes_out_in_order() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN, request_acknowledge=False))
    world.join("a", filter=Kinds("q"))
    for letter in "xyxzx":
        world.push(f"m{len(world.broker._core.sessions)}{letter}")
    for number, letter in enumerate("xy"):
        world.push(f"n{number}{letter}")
    waiting = waiting_ids(world)[1]
    world.leave("a")
    words = world.join("b")
    assert [word.split()[2] for word in words if "<-" in word] == waiting


def test_round_robin_goes_on_after_the_one_that_was_served() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    for name, kinds in (("a", "x"), ("b", "xy"), ("c", "y")):
        world.join(name, filter=Kinds(kinds))
    takers = [world.push(f"m{number}{kind}")[0][0] for number, kind in enumerate("xxxyyyxy")]
    assert takers == ["a", "b", "a", "b", "c", "b", "a", "b"]


def test_there_are_so_many_filters_at_most() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    for number in range(MAX_FILTERS):
        assert world.join(f"c{number}", filter=Kinds(str(number)))[-1].endswith("join: 0")
    assert world.join("more", filter=Kinds("more"))[-1] == "more join: 482"
    assert world.join("more", filter=Kinds("3"))[-1] == "more join: 0"
    world.leave("c7")
    assert world.join("more", filter=Kinds("more"))[-1] == "more join: 0"


def test_more_sets_of_takers_than_lanes_wait_in_order() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    letters = "abcdefghijk"
    for letter in letters:
        world.join(letter, filter=Bits(letters.index(letter)))
        world.step(Block(world.numbers[letter]))
    world.join("none", filter=Kinds(""))
    world.checked = False
    for number in range(1, 1_200):
        assert world.push(f"m{number}") == []
        world.finish()
    world.checked = True
    queue = world.queue()
    assert isinstance(queue.regular, ParkingList)
    assert len(queue.regular.lanes) == 1_024
    assert queue.regular_count == 1_199
    world.step(Unblock(world.numbers["a"]))
    words = [f"m{number}" for number in range(1, 1_200) if number & 1]
    seen = [effect.message.message_id for effect in all_sent(world)]
    assert seen == words[: len(seen)]
    for letter in letters[1:]:
        world.step(Unblock(world.numbers[letter]))
        all_sent(world)
    assert queue.regular_count == 0
    assert queue.counters.sent == 1_199


def all_sent(world: World) -> list[Deliver]:
    sent: list[Deliver] = []
    for _ in range(200):
        sent += [each for each in world.last if isinstance(each, Deliver)]
        due = world.broker.next_deadline()
        if due is None or due > world.now:
            break
        world.told(world.broker.on_deadline(world.now))
    return sent


class Bits(SubscriptionFilter):
    """Takes messages whose number has a bit."""

    def __init__(self, bit: int) -> None:
        self.bit = bit

    def accepts(self, message: Message) -> bool:
        return int(message.message_id[1:]) >> self.bit & 1 == 1

    def identity(self) -> object:
        return self.bit


class Broken(SubscriptionFilter):
    """Raises."""

    def accepts(self, message: Message) -> bool:
        raise ValueError(message.message_id)


def test_a_filter_that_raises_takes_nothing() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    world.join("a", filter=Broken())
    assert world.push("m1x") == []
    assert world.books()["errors"] == 1
    assert world.join("b", filter=Kinds("x"))[0] == "b <- m1x FA"


def test_what_is_parked_expires() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN, message_timeout_ms=1_000))
    world.join("a", filter=Kinds("x"))
    for number in range(3):
        world.push(f"m{number}y")
    world.wait(5.0)
    assert world.books()["expired"] == 3
    assert world.join("b", filter=Kinds("y")) == ["b join: 0"]


def test_a_deferred_message_is_looked_at_when_it_is_due() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    world.join("a", filter=Kinds("x"))
    assert world.push("m1x", extras=PushExtras(delay_ms=1_000)) == []
    assert world.push("m2y", extras=PushExtras(delay_ms=1_000)) == []
    assert world.wait(2.0) == ["a <- m1x FA"]
    assert waiting_ids(world) == [[], ["m2y"]]


def test_credit_makes_ready() -> None:
    world = World(options=queue_defaults(status=STATUS_ROUND_ROBIN))
    world.join("a", credit=1, filter=Kinds("x"))
    assert world.push("m1x") == ["a <- m1x FA"]
    assert [world.push(each) for each in ("m2x", "m3y", "m4x")] == [[], [], []]
    assert world.step(Grant(world.numbers["a"], "ch", 2)) == ["a <- m2x FA", "a <- m4x FA"]


@pytest.mark.parametrize("hooked", [True, False])
def test_a_queue_that_waits_for_acknowledges_sends_one_at_a_time(hooked: bool) -> None:
    handler = "ack-consumer" if hooked else "ack-received"
    world = World(
        options=queue_defaults(
            status=STATUS_ROUND_ROBIN, wait_for_acknowledge=True, delivery_handler=handler
        )
    )
    world.join("a", filter=Kinds("x"))
    world.push("m0y")
    assert [word for word in world.push("m1x") if "<-" in word] == ["a <- m1x FA"]
    assert [word for word in world.push("m2x") if "<-" in word] == []
    assert [word for word in world.ack("a", "m1x") if "<-" in word] == ["a <- m2x FA"]


class Undecided(DeliveryHandler):
    """Allows all, and is asked each time."""

    def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
        return ALLOW


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.sampled_from("xyzw"), st.booleans()),
            st.tuples(st.just("join"), st.sampled_from(CLIENTS), st.sampled_from((*FILTERS, None))),
            st.tuples(st.just("leave"), st.sampled_from(CLIENTS), st.none()),
            st.tuples(st.sampled_from(("block", "unblock")), st.sampled_from(CLIENTS), st.none()),
            st.tuples(st.just("grant"), st.sampled_from(CLIENTS), st.sampled_from((-1, 0, 2))),
            st.tuples(st.just("ack"), st.sampled_from(CLIENTS), st.integers(0, 20)),
        ),
        max_size=40,
    ),
    st.sampled_from((STATUS_BROADCAST, STATUS_PUSH)),
    st.booleans(),
    st.sampled_from((Kinds, Keyed)),
)
def test_the_short_way_past_filters_is_the_long_way(
    script: list[tuple[str, str, object]], status: int, acks: bool, kind: type[Kinds]
) -> None:
    """The same words, books and clients, whether or not a handler has to be asked."""
    told = []
    for handler in ("allow-all", "undecided"):
        world = World(
            EngineLimits(max_in_flight_per_session=3),
            queue_defaults(status=status, request_acknowledge=acks, delivery_handler=handler),
            handlers={"undecided": Undecided()},
        )
        world.create()
        world.connect(*CLIENTS)
        words: list[object] = []
        for number, (what, first, second) in enumerate(script):
            if what == "push":
                words += world.push(f"m{number}{first}", high=second is True)
            elif what == "join":
                words += world.join(first, filter=None if second is None else kind(str(second)))
            elif what == "leave":
                words += world.leave(first)
            elif what == "ack":
                words += world.ack(first, f"m{second}x")
            elif what == "grant":
                words += world.step(Grant(world.numbers[first], "ch", int(str(second))))
            else:
                command = Block if what == "block" else Unblock
                words += world.step(command(world.numbers[first]))
            words += world.finish()
        sessions = world.broker._core.sessions.values()
        words.append([(each.delivered_in_all(), each.in_flight) for each in sessions])
        told.append([words, world.books()])
    assert told[0] == told[1]


def test_a_broadcast_shares_the_lists_of_those_who_want_it() -> None:
    world = World(options=queue_defaults(status=STATUS_BROADCAST, request_acknowledge=False))
    chosen = Keyed("x")
    for name in CLIENTS:
        world.join(name, filter=chosen if name < "c" else Keyed("y"))
    lists = []
    for number in range(10):
        assert len(world.push(f"m{number}x")) == 2
        lists.append([each.sessions for each in world.last if isinstance(each, Deliver)])
    assert all(a is b and c is d for (a, c), (b, d) in itertools.pairwise(lists))
    assert chosen.asked == 1, "the key tells"
