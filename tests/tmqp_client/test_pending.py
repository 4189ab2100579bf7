"""What waits for an answer: found, timed out in order, at a bounded cost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tmqp_client._core.pending import NO_QUEUE, Kind, Pending, PendingTable


def make(message_id: str, timeout_s: float = 10.0, now: float = 0.0) -> Pending:
    return Pending(Kind.PUSH, message_id, "push to", "orders", 1, now, timeout_s)


def test_an_entry_is_found_until_it_is_removed() -> None:
    table = PendingTable()
    entry = make("a")
    table.add(entry)
    assert table.get("a") is entry
    assert "a" in table
    assert len(table) == 1
    table.remove(entry)
    assert entry.done
    assert table.get("a") is None
    assert table.next_deadline() is None


def test_the_earliest_deadline_comes_first_whatever_the_order() -> None:
    table = PendingTable()
    for name, timeout_s in (("late", 30.0), ("soon", 1.0), ("middle", 5.0)):
        table.add(make(name, timeout_s))
    assert table.next_deadline() == 1.0
    assert [entry.message_id for entry in table.expire(5.0)] == ["soon", "middle"]
    assert table.next_deadline() == 30.0
    assert table.expire(29.9) == []
    assert len(table) == 1


def test_an_answered_entry_does_not_time_out() -> None:
    table = PendingTable()
    first, second = make("a", 1.0), make("b", 2.0)
    table.add(first)
    table.add(second)
    table.remove(first)
    assert table.next_deadline() == 2.0
    assert table.expire(10.0) == [second]


def test_no_time_limit_is_a_deadline_that_never_comes() -> None:
    table = PendingTable()
    table.add(make("a", float("inf")))
    assert table.expire(1e300) == []


def test_clearing_returns_all_in_the_order_they_were_asked() -> None:
    table = PendingTable()
    for name in "cab":
        table.add(make(name))
    cleared = table.clear()
    assert [entry.message_id for entry in cleared] == ["c", "a", "b"]
    assert all(entry.done for entry in cleared)
    assert len(table) == 0
    assert table.next_deadline() is None


def test_answered_entries_do_not_pile_up() -> None:
    table = PendingTable()
    for number in range(10_000):
        entry = make(str(number), 15.0, float(number))
        table.add(entry)
        table.remove(entry)
    assert len(table._heap) <= 100


@given(st.lists(st.tuples(st.floats(0.001, 100), st.booleans()), max_size=200), st.floats(0, 100))
def test_exactly_what_is_due_and_unanswered_expires(
    entries: list[tuple[float, bool]], now: float
) -> None:
    table = PendingTable()
    due: set[str] = set()
    for number, (timeout_s, answered) in enumerate(entries):
        entry = make(str(number), timeout_s)
        table.add(entry)
        if answered:
            table.remove(entry)
        elif timeout_s <= now:
            due.add(entry.message_id)
    expired = table.expire(now)
    assert {entry.message_id for entry in expired} == due
    deadlines = [entry.deadline for entry in expired]
    assert deadlines == sorted(deadlines)


def test_what_was_asked_is_said_in_words() -> None:
    assert make("a").asked == "push to 'orders'/1"
    assert Pending(Kind.PING, "a", "ping", "", NO_QUEUE, 0, 1).asked == "ping"
    join = Pending(Kind.OPERATION, "a", "join channel", "orders", NO_QUEUE, 0, 1)
    assert join.asked == "join channel 'orders'"
    assert "join channel" in repr(join)
