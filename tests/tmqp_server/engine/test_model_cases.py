"""The cases C3 to C11 of docs/reliability.md, each by its name, on broker and model at once.

``test_model.py`` goes everywhere by chance; here each promise is led to its edges on purpose.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.engine.model.delivering import TICK_S
from tests.tmqp_server.engine.model.desk import Settings
from tests.tmqp_server.engine.model.draws import RoutedEnvelope
from tests.tmqp_server.engine.model.duel import Duel
from tests.tmqp_server.engine.model.things import (
    CACHE,
    PULL,
    PUSH,
    ROUND_ROBIN,
    SENDING,
    STOPPED,
    Word,
)
from tmqp_server.engine.commands import (
    Acknowledge,
    AddBinding,
    Block,
    ClearMessages,
    Connect,
    CreateQueue,
    CreateRouter,
    Disconnect,
    Grant,
    Join,
    Leave,
    Publish,
    Pull,
    Push,
    PushExtras,
    RemoveQueue,
    Unblock,
    UpdateQueue,
)
from tmqp_server.engine.options import TO_QUEUE, BindingOptions, QueueChanges

STATUSES = range(7)
CONSUMERS = (2, 3, 4)


class Scene(Duel):
    """Client 1 produces; 2 to 4 may consume ``ch``; queue 1 has the given options."""

    def __init__(
        self, changes: QueueChanges | None = None, *consumers: int, work: int = 1_000
    ) -> None:
        super().__init__(Settings(), {}, work)
        self.pushed = 0
        for number in (1, *CONSUMERS):
            self.do(Connect(number, None, f"c{number}"))
        self.do(CreateQueue(1, None, "ch", 1, changes))
        for number in consumers:
            self.do(Join(number, None, "ch"))

    def push(self, high: bool = False, extras: PushExtras | None = None, by: int = 1) -> list[Word]:
        """Push one message."""
        self.pushed += 1
        name = f"m{self.pushed:04}"
        return self.do(Push(by, name, "ch", 1, high, False, 10, name, extras))

    def answer(self, number: int, name: str, positive: bool = True) -> list[Word]:
        """Acknowledge, or refuse."""
        return self.do(Acknowledge(number, name, "ch", 1, positive, "" if positive else "no", "w"))

    def holders(self) -> dict[str, list[int]]:
        """Who has which message, by the model."""
        line = self.model.line("ch", 1)
        flights = [] if line is None else line.flights
        return {each.message_id: [who.number for who in each.holders] for each in flights}


def delivered(words: list[Word]) -> list[tuple[int, str]]:
    """Who got which message, by a delivery or a pull."""
    got = []
    for word in words:
        if word[0] == "deliver" or word[0] == "pulled":
            got.append((int(str(word[1])), str(word[4])))
    return got


happenings = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "push", "block", "unblock", "join", "leave", "answer"]),
        st.sampled_from(CONSUMERS),
    ),
    max_size=60,
)


@settings(max_examples=100)
@given(st.sampled_from([PUSH, ROUND_ROBIN]), happenings, st.sampled_from([2, 1_000]))
def test_c3_what_is_not_put_back_comes_in_the_order_of_its_producer(
    status: int, happened: list[tuple[str, int]], work: int
) -> None:
    scene = Scene(QueueChanges(status=status, delivery_handler="allow-all"), 2, 3, work=work)
    seen: dict[tuple[int, int], list[str]] = defaultdict(list)
    producer: dict[str, int] = {}
    for what, number in happened:
        if what == "push":
            words = scene.push(by=number)
            producer[f"m{scene.pushed:04}"] = number
        elif what == "answer":
            held = [(who, name) for name, whose in scene.holders().items() for who in whose]
            words = scene.answer(*held[0]) if held else []
        else:
            command = {"block": Block(number), "unblock": Unblock(number)}.get(what)
            joins = Join(number, None, "ch") if what == "join" else Leave(number, None, "ch")
            words = scene.do(command or joins)
        for who, name in delivered(words):
            seen[who, producer[name]].append(name)
    for names in seen.values():
        assert names == sorted(set(names))


@settings(max_examples=100)
@given(
    st.sampled_from([(ROUND_ROBIN, False), (PUSH, True), (ROUND_ROBIN, True)]),
    st.lists(
        st.tuples(
            st.sampled_from(["push", "push", "nack", "ack", "gone", "back", "wait", "block"]),
            st.sampled_from(CONSUMERS),
        ),
        max_size=50,
    ),
)
def test_c4_a_message_for_one_is_never_in_two_hands(
    kind: tuple[int, bool], happened: list[tuple[str, int]]
) -> None:
    status, first = kind
    changes = QueueChanges(
        status=status,
        send_only_first_acquirer=first,
        delivery_handler="putback-end",
        acknowledge_timeout_ms=1_000,
        put_back_limit=1_000,
    )
    scene = Scene(changes, *CONSUMERS)
    hands: dict[str, int] = {}
    sessions = dict(zip(CONSUMERS, CONSUMERS, strict=True))
    last = max(CONSUMERS)
    for what, client in happened:
        words: list[Word] = []
        if what == "push":
            words = scene.push()
        elif what in {"ack", "nack"} and hands:
            name = min(hands)
            words = scene.answer(hands.pop(name), name, what == "ack")
        elif what == "gone":
            scene.do(Disconnect(sessions[client]))
        elif what == "back":
            last += 1
            old = scene.model.by_id(f"c{client}")
            scene.do(Connect(last, None, f"c{client}", take_over=old is not None))
            sessions[client] = last
            words = scene.do(Join(last, None, "ch"))
        elif what == "block":
            words = scene.do(Block(sessions[client])) + scene.do(Unblock(sessions[client]))
        else:
            words = scene.wait(1.0)
            hands.clear()  # after a timeout nothing sent before it is in any hand
        for who, name in delivered(words):
            assert name not in hands
            hands[name] = who


@settings(max_examples=100)
@given(
    st.sampled_from([PUSH, ROUND_ROBIN, PULL]),
    st.lists(st.sampled_from(["push", "pull", "ack", "nack", "wait"]), max_size=40),
)
def test_c5_a_queue_that_waits_has_one_message_out(status: int, happened: list[str]) -> None:
    changes = QueueChanges(
        status=status,
        wait_for_acknowledge=True,
        delivery_handler="putback-start",
        acknowledge_timeout_ms=1_000,
    )
    scene = Scene(changes, 2, 3)
    for number, what in enumerate(happened):
        if what == "push":
            scene.push()
        elif what == "pull":
            scene.do(Pull(2, f"pull{number}", "ch", 1, 5))
        elif what == "wait":
            scene.wait(1.0)
        else:
            for name, holders in scene.holders().items():
                scene.answer(holders[0], name, what == "ack")
        # A message of two consumers lets the next one go when the first of them has answered.
        everybody = 2 if status == PUSH else 1
        out = [name for name, holders in scene.holders().items() if len(holders) == everybody]
        assert len(out) <= 1


@settings(max_examples=100)
@given(
    st.sampled_from(SENDING),
    st.lists(st.tuples(st.sampled_from(["push", "grant"]), st.integers(0, 3)), max_size=30),
)
def test_c5_nobody_gets_more_than_his_credit(status: int, happened: list[tuple[str, int]]) -> None:
    scene = Scene(QueueChanges(status=status))
    scene.do(Join(2, None, "ch", 2))
    scene.do(Join(3, None, "ch", 1))
    left = {2: 2, 3: 1}
    for what, amount in happened:
        if what == "push":
            words = scene.push()
        else:
            left[2] = amount
            words = scene.do(Grant(2, "ch", amount))
        for who, _ in delivered(words):
            left[who] -= 1
        assert min(left.values()) >= 0


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 11), st.sampled_from(STATUSES)), max_size=40))
def test_c6_every_message_is_somewhere(happened: list[tuple[int, int]]) -> None:
    """``Duel`` balances the broker's own figures after each step; here is what moves them."""
    changes = QueueChanges(
        acknowledge_timeout_ms=500,
        message_timeout_ms=700,
        put_back_limit=1,
        dead_letter=("graves", 1),
        delivery_handler="putback-end",
    )
    scene = Scene(changes, 2)
    for what, status in happened:
        if what < 5:
            delay = PushExtras(delay_ms=500) if what == 4 else None
            scene.push(what == 1, delay)
        elif what < 7:
            for name, holders in scene.holders().items():
                scene.answer(holders[0], name, what == 5)
        elif what == 7:
            scene.do(UpdateQueue(1, None, "ch", 1, QueueChanges(status=status)))
        elif what == 8:
            scene.do(ClearMessages(1, None, "ch", 1, status % 2 == 0, True))
        elif what == 9:
            scene.do(Pull(2, f"pull{scene.steps}", "ch", 1, status))
        else:
            scene.wait(0.25 * what)
    scene.wait(5.0)
    assert scene.books() == []


@pytest.mark.parametrize("how", ["nack", "silence", "gone"])
@pytest.mark.parametrize("where", ["putback-start", "putback-end"])
@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_c7_exactly_as_many_deliveries_as_allowed_then_the_dead_letters(
    limit: int, where: str, how: str
) -> None:
    changes = QueueChanges(
        delivery_handler=where,
        put_back_limit=limit,
        dead_letter=("graves", 7),
        acknowledge_timeout_ms=1_000,
        status=ROUND_ROBIN,
    )
    scene = Scene(changes, 2)
    limit = limit or scene.broker.limits.max_put_backs
    words = scene.push()
    assert [name for _, name in delivered(words)] == ["m0001"]
    deliveries, number = 1, 2
    for _ in range(limit + 5):
        if how == "nack":
            words = scene.answer(number, "m0001", False)
        elif how == "silence":
            words = scene.wait(1.0)
        else:
            scene.do(Disconnect(number))
            number = number + 10
            scene.do(Connect(number, None, f"c{number}"))
            words = scene.do(Join(number, None, "ch")) + scene.wait(1.0)
        deliveries += len(delivered(words))
        if not delivered(words):
            break
    assert deliveries == limit + 1
    line, grave = scene.model.line("ch", 1), scene.model.line("graves", 7)
    assert line is not None
    assert grave is not None
    assert line.counts["dead"] == len(grave.waiting()) == 1


@settings(max_examples=150)
@given(
    st.integers(1, 5_000),
    st.integers(1, 5_000),
    st.lists(st.floats(0.0, 2.0, allow_nan=False), min_size=1, max_size=12),
)
def test_c8_no_time_comes_early_and_none_is_forgotten(
    answer_ms: int, life_ms: int, jumps: list[float]
) -> None:
    """Time is asked for when it suits the world, not when something is due."""
    scene = Scene(QueueChanges(acknowledge_timeout_ms=answer_ms, message_timeout_ms=life_ms), 2)
    scene.push()
    scene.do(Leave(2, None, "ch"))
    scene.push()
    queue, broker, start = scene.broker.queues()[0], scene.broker, scene.now
    answer_at, life_at = start + answer_ms / 1_000, start + life_ms / 1_000
    now = start
    for jump in [*jumps, 10.0]:
        now += jump
        broker.on_deadline(now)
        while (deadline := broker.next_deadline()) is not None and deadline <= now:
            broker.on_deadline(now)
        assert (queue.counters.ack_timeouts == 1) == (now >= answer_at)
        if now < life_at:
            assert queue.counters.expired == 0
        elif now >= life_at + TICK_S:
            assert queue.counters.expired == 1
    assert (queue.counters.ack_timeouts, queue.counters.expired) == (1, 1)


@pytest.mark.parametrize("consumers", [(), (2,), (2, 3)], ids=["nobody", "one", "two"])
@pytest.mark.parametrize("new", STATUSES)
@pytest.mark.parametrize("old", STATUSES)
def test_c9_a_status_changes_while_messages_are_everywhere(
    old: int, new: int, consumers: tuple[int, ...]
) -> None:
    changes = QueueChanges(
        delivery_handler="putback-start", acknowledge_timeout_ms=1_000, put_back_limit=2
    )
    scene = Scene(changes, *consumers)
    scene.push()  # in flight, if there is anybody
    for number in consumers[:1]:
        scene.do(Block(number))
    scene.do(UpdateQueue(1, None, "ch", 1, QueueChanges(status=old)))
    for high in (False, True, False):
        scene.push(high)
    scene.push(extras=PushExtras(delay_ms=500))
    scene.do(Pull(2, "before", "ch", 1, 2))
    scene.do(UpdateQueue(1, None, "ch", 1, QueueChanges(status=new)))
    for number in consumers:
        scene.do(Unblock(number))
    scene.push()
    scene.do(Pull(2, "after", "ch", 1, 9, newest_first=True))
    for name, holders in scene.holders().items():
        for number in list(holders):
            scene.answer(number, name, number % 2 == 1)
    scene.wait(5.0)
    scene.do(Join(4, None, "ch"))
    scene.do(UpdateQueue(1, None, "ch", 1, QueueChanges(status=STOPPED)))
    assert scene.holders() == {}


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("clear", ["", "high", "regular", "both"])
@pytest.mark.parametrize("newest_first", [False, True])
def test_c10_pulls_by_count_order_clear_and_information(
    newest_first: bool, clear: str, waits: bool
) -> None:
    for count, info, stored in itertools.product((1, 2, 3, 5), (False, True), ("", "r", "rhr")):
        changes = QueueChanges(status=PULL, wait_for_acknowledge=waits)
        scene = Scene(changes, 2)
        for letter in stored:
            scene.push(letter == "h")
        high, regular = clear in {"high", "both"}, clear in {"regular", "both"}
        words = scene.do(Pull(2, "pull", "ch", 1, count, newest_first, high, regular, info))
        while scene.holders() and words[-1][0] != "end":
            (name,) = scene.holders()
            words = words + scene.answer(2, name)
        kinds = [word[0] for word in words]
        assert kinds == ["pulled"] * min(count, len(stored)) + ["end"]
        assert words[-1][3] == ("End" if stored else "Empty")


@pytest.mark.parametrize(
    ("who", "place", "count", "reason"),
    [
        (2, ("ch", 1), 0, "Unacceptable"),
        (3, ("ch", 1), 1, "Unauthorized"),
        (2, ("nowhere", 1), 1, "No-Channel"),
        (2, ("ch", 9), 1, "No-Queue"),
        (2, ("ch", 1), 1, "Empty"),
    ],
)
def test_c10_a_pull_that_cannot_be_says_why(
    who: int, place: tuple[str, int], count: int, reason: str
) -> None:
    scene = Scene(QueueChanges(status=PULL), 2)
    assert scene.do(Pull(who, "pull", *place, count)) == [("end", who, "pull", reason)]


def test_c10_a_cache_is_read_as_often_as_one_likes() -> None:
    scene = Scene(QueueChanges(status=CACHE), 2)
    assert scene.do(Pull(2, "a", "ch", 1, 0)) == [("reply", 2, "a", 404, None)]
    for _ in range(3):
        scene.push()
        for request in ("b", "c"):
            words = scene.do(Pull(2, request, "ch", 1, 0))
            assert words == [("answer", 2, request, f"m{scene.pushed:04}")]
    assert scene.do(Pull(3, "d", "ch", 1, 0)) == [("reply", 3, "d", 401, None)]


@pytest.mark.parametrize("working", list(itertools.product([True, False], repeat=3)))
@pytest.mark.parametrize("method", [0, 1, 2], ids=["distribute", "round robin", "only first"])
def test_c11_a_router_counts_exactly_and_only_first_moves_on_failure(
    method: int, working: tuple[bool, ...]
) -> None:
    scene = Scene()
    scene.do(CreateRouter(1, None, "r", method))
    places = [f"q{number}" for number in range(3)]
    for number, place in enumerate(places):
        scene.do(CreateQueue(1, None, place, 1, QueueChanges(status=PULL)))
        options = BindingOptions(place, TO_QUEUE, place, 1, 3 - number, 0, 0)
        scene.do(AddBinding(1, None, "r", options))
    for place, works in zip(places, working, strict=True):
        if not works:
            scene.do(RemoveQueue(1, None, place, 1))
    for number in range(6):
        words = scene.do(Publish(1, "p", "r", 10, RoutedEnvelope(1, f"p{number}", 10)))
        assert words == [("reply", 1, "p", 0 if any(working) else 404, None)]
    alive = [place for place, works in zip(places, working, strict=True) if works]
    found = {queue.channel_name: queue.regular_count for queue in scene.broker.queues()}
    share = {0: 6, 1: 6 // max(len(alive), 1), 2: 0}[method]
    wanted = dict.fromkeys(alive, share)
    if method == 2 and alive:
        wanted[alive[0]] = 6
    assert {place: found[place] for place in alive} == wanted


def test_a_message_saved_again_that_expired_was_erased_twice_for_the_model() -> None:
    """It is put back at its ack timeout, saved again, and expires, all in one step."""
    changes = QueueChanges(
        acknowledge_timeout_ms=1_000, message_timeout_ms=700, delivery_handler="ack-ifsaved"
    )
    scene = Scene(changes, 2)
    scene.push()
    (ticket,) = scene.translator.open
    scene.sync(ticket, True)
    scene.wait(1.5)
    assert scene.broker.queues()[0].counters.expired == 1
