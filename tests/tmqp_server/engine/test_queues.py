"""Waiting lists, messages in flight with the same id, clearing, and the books."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.engine.core import Core
from tmqp_server.engine.flights import Flights, enter, leave
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Client, Origin
from tmqp_server.engine.model.delivery import HandlerRegistry
from tmqp_server.engine.model.disciplines import DISCIPLINES
from tmqp_server.engine.model.handlers import AllowAll
from tmqp_server.engine.model.message import MARK_GONE, MARK_HIGH, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.model.waiting import WaitingList
from tmqp_server.engine.options import BrokerOptions, QueueOptions

FLIGHTS = Flights(Core(EngineLimits(), BrokerOptions(), HandlerRegistry()))
PRODUCER = Origin(1, "p", None, None, "")


def message(sequence: int, expires_at: float = NEVER, marks: int = 0, name: str = "") -> Message:
    made = Message(name or f"m{sequence}", PRODUCER, "ch", 1, 10, b"", marks, sequence)
    if expires_at != NEVER:
        made.rarely().expires_at = expires_at
    return made


def queue(options: QueueOptions | None = None) -> Queue:
    options = QueueOptions() if options is None else options
    discipline = DISCIPLINES[options.status]
    return Queue("ch", 1, Audience(), discipline, AllowAll(), options, EngineLimits())


# --- Waiting lists -------------------------------------------------------------------------------


def test_first_in_first_out_with_put_backs_at_both_ends() -> None:
    waiting = WaitingList()
    for sequence in (1, 2, 3):
        waiting.put_last(message(sequence))
    waiting.put_first(message(0))
    waiting.put_last(message(4))
    assert waiting.count == 5
    assert [waiting.take().sequence for _ in range(5)] == [0, 1, 2, 3, 4]
    assert waiting.count == 0


def test_expired_messages_are_passed_over() -> None:
    waiting = WaitingList()
    for sequence in range(6):
        waiting.put_last(message(sequence, 5.0 if sequence % 2 else NEVER))
    assert waiting.next_expiry() >= 5.0
    assert waiting.take_expired(4.0, 10) == []
    expired = waiting.take_expired(6.0, 10)
    assert [each.sequence for each in expired] == [1, 3, 5]
    for each in expired:
        each.marks |= MARK_GONE
    assert waiting.count == 3
    waiting.tidy()
    assert [waiting.take().sequence for _ in range(3)] == [0, 2, 4]
    waiting.tidy()
    assert waiting.detach() == [deque()]


def test_an_expired_message_may_stay_in_its_place() -> None:
    waiting = WaitingList()
    for sequence in range(3):
        waiting.put_last(message(sequence, 5.0))
    expired = waiting.take_expired(6.0, 10)
    expired[0].marks |= MARK_GONE
    expired[2].marks |= MARK_GONE
    expired[1].rarely().expires_at = NEVER
    waiting.keep()
    waiting.tidy()
    assert waiting.count == 1
    assert waiting.take().sequence == 1


def test_tombstones_do_not_pile_up_behind_a_message_that_stays() -> None:
    waiting = WaitingList()
    waiting.put_last(message(0))
    for sequence in range(1, 5_001):
        waiting.put_last(message(sequence, 5.0))
        if sequence % 500 == 0:
            for each in waiting.take_expired(6.0, 1_000):
                each.marks |= MARK_GONE
            waiting.tidy()
    assert waiting.count == 1
    assert len(waiting.detach()[0]) <= 1_100


@given(
    st.lists(
        st.tuples(st.sampled_from(["last", "first", "take", "expire", "tidy"]), st.integers(1, 9)),
        max_size=60,
    )
)
def test_a_waiting_list_is_what_a_plain_list_is(script: list[tuple[str, int]]) -> None:
    waiting = WaitingList()
    plain: list[Message] = []
    for sequence, (action, number) in enumerate(script):
        if action == "last":
            each = message(sequence, float(number) if number % 3 else 0.0)
            waiting.put_last(each)
            plain.append(each)
        elif action == "first":
            each = message(sequence, float(number) if number % 2 else 0.0)
            waiting.put_first(each)
            plain.insert(0, each)
        elif action == "take" and plain:
            assert waiting.take() is plain.pop(0)
        elif action == "expire":
            expired = waiting.take_expired(float(number), 3)
            assert len(expired) <= 3
            for each in expired:
                assert each.expires_at <= number
                each.marks |= MARK_GONE
                plain.remove(each)
        elif action == "tidy":
            waiting.tidy()
        assert waiting.count == len(plain)
        earliest = min((each.expires_at for each in plain), default=NEVER)
        assert earliest <= waiting.next_expiry() <= earliest + 0.125


# --- Queues --------------------------------------------------------------------------------------


def test_high_priority_first() -> None:
    each = queue()
    each.put_last(message(1))
    each.put_last(message(2, marks=MARK_HIGH))
    each.put_first(message(3))
    each.put_first(message(4, marks=MARK_HIGH))
    assert (each.high_count, each.regular_count, each.live()) == (2, 2, 4)
    assert [each.take().sequence for _ in range(4)] == [4, 2, 3, 1]
    assert each.is_empty()


def test_flights_in_the_order_of_sending() -> None:
    each = queue(QueueOptions(acknowledge_timeout_ms=1_000))
    assert each.next_due() == NEVER
    for sequence in range(4):
        flying = message(sequence)
        flying.sent_at = 10.0 + sequence
        enter(each, flying)
    assert each.next_due() == 11.0
    assert [flying.sequence for flying in each.overdue(12.5, 10)] == [0, 1]
    assert [flying.sequence for flying in each.overdue(12.5, 1)] == [0]
    assert each.overdue(10.999, 10) == []
    leave(each, each.flights["m0"])
    assert each.next_due() == 12.0


def test_duplicates() -> None:
    each = queue()
    holder = Client(2, "a", None, None, "", None, False, 0.0)
    other = Client(3, "b", None, None, "", None, False, 0.0)
    same = [message(sequence, name="same") for sequence in (1, 2, 3)]
    for flying in same:
        flying.holder = holder
        enter(each, flying)
    same[1].holder = None
    same[1].holders = {3: other}
    assert len(each.flights) == 3
    assert each.duplicate_held_by("same", holder) is same[2]
    assert each.duplicate_held_by("same", other) is same[1]
    assert each.duplicate_held_by("other", other) is None
    for flying in (same[1], same[0], same[2]):
        leave(each, flying)
    assert each.flights == {}
    assert each.duplicates == {}
    enter(each, same[2])
    assert list(each.flights) == ["same"]


def test_clearing_everything_takes_all_places() -> None:
    each = queue()
    waiting = [message(sequence) for sequence in range(3)]
    each.put_last(waiting[0])
    each.put_last(message(9, marks=MARK_HIGH))
    each.deferred.add(waiting[1], 50.0)
    enter(each, waiting[2])
    each.counters.accepted = 4
    assert each.imbalance() == 0
    trash = FLIGHTS.clear(each, True, True, True)
    assert each.imbalance() == 0
    assert (each.counters.cleared, each.live()) == (4, 0)
    taken = [trash.take() for _ in range(5)]
    assert sorted(one.sequence for one in taken if one is not None) == [0, 1, 2, 9]
    assert taken[4] is None


def test_clearing_one_priority_leaves_the_other_in_order() -> None:
    each = queue()
    for sequence in range(8):
        marks = MARK_HIGH if sequence % 2 else 0
        each.deferred.add(message(sequence, marks=marks), 100.0 - sequence)
    each.counters.accepted = 8
    FLIGHTS.clear(each, True, False, False)
    assert each.imbalance() == 0
    order = []
    while (one := each.deferred.take(1000.0)) is not None:
        order.append(one.sequence)
    assert order == [6, 4, 2, 0]


def test_tombstones_are_not_cleared_twice() -> None:
    each = queue()
    each.put_last(message(1))
    each.put_last(message(2, 5.0))
    each.put_last(message(3))
    each.counters.accepted = 3
    (expired,) = each.take_expired(6.0, 5)
    expired.marks |= MARK_GONE
    each.counters.expired += 1
    each.tidy()
    trash = FLIGHTS.clear(each, True, True, False)
    assert each.imbalance() == 0
    taken = [trash.take(), trash.take(), trash.take()]
    assert [one.sequence for one in taken if one is not None] == [1, 3]


def test_an_imbalance_shows() -> None:
    each = queue()
    each.counters.accepted = 2
    each.put_last(message(1))
    assert each.imbalance() == 1
    each.counters.done = 2
    assert each.imbalance() == -1
