"""Audiences: join order, exceptions counted, shared lists of recipients."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.sessions import Audience, Session, Subscription


def session(number: int) -> Session:
    return Session(number, f"c{number}", None, None, "", None, False, 0.0)


def subscribe(audience: Audience, number: int, credit: int = -1) -> Subscription:
    made = Subscription(session(number), audience, credit, None, 0.0)
    audience.add(made)
    return made


def test_lists_are_made_when_somebody_comes_or_goes() -> None:
    audience = Audience()
    first = subscribe(audience, 7)
    audience.refresh()
    assert (audience.everyone, audience.first, audience.rest) == ([7], [7], [])
    only = audience.only
    assert only is first.session
    for number in (3, 5):
        subscribe(audience, number)
    audience.refresh()
    before = audience.everyone
    assert (before, audience.first, audience.rest) == ([7, 3, 5], [7], [3, 5])
    assert audience.only is None
    assert list(audience.clients) == [7, 3, 5]
    audience.refresh()
    assert audience.everyone is before
    audience.remove(first)
    audience.refresh()
    assert audience.everyone == [3, 5]
    assert before == [7, 3, 5]


def test_who_can_take() -> None:
    audience = Audience()
    assert not audience.can_take(False)
    assert not audience.can_take(True)
    subscribe(audience, 1)
    slow = subscribe(audience, 2)
    assert audience.can_take(False)
    slow.session.blocked = True
    audience.recount(slow)
    assert not audience.can_take(False)
    assert audience.can_take(True)
    assert not slow.can_take()


def test_deliveries_to_all_are_counted_without_touching_each() -> None:
    audience = Audience()
    early = subscribe(audience, 1)
    early.session.subscriptions["ch"] = early
    audience.fanouts += 3
    late = subscribe(audience, 2)
    late.session.subscriptions["ch"] = late
    audience.fanouts += 2
    early.session.delivered += 1
    assert (early.session.delivered_in_all(), late.session.delivered_in_all()) == (6, 2)
    audience.remove(early)
    del early.session.subscriptions["ch"]
    audience.fanouts += 10
    assert early.session.delivered_in_all() == 6
    assert repr(early.session) == "Client(1, 'c1')"


CHANGES = st.tuples(
    st.sampled_from(["blocked", "full", "credit", "filter", "leave", "join", "refresh", "next"]),
    st.integers(1, 5),
    st.booleans(),
)


@given(st.lists(CHANGES, max_size=40))
def test_what_is_counted_is_what_is_there(changes: list[tuple[str, int, bool]]) -> None:
    audience = Audience()
    members: dict[int, Subscription] = {}
    for what, number, value in changes:
        if what == "join":
            if number not in members:
                members[number] = subscribe(audience, number, 0 if value else -1)
            continue
        if what == "refresh":
            audience.refresh()
            hearing = [n for n, each in members.items() if each.can_take()]
            assert audience.everyone == list(audience.clients) == hearing
            continue
        if what == "next":
            order = list(members.values())
            after = (order + order)[number:] if number < len(order) else order
            able = [each for each in after if not (each.session.full or not each.can_take())]
            assert audience.next_ready(number - 1) is (able[0] if able else None)
            continue
        member = members.get(number)
        if member is None:
            continue
        if what == "leave":
            audience.remove(members.pop(number))
            continue
        if what == "credit":
            member.credit = 0 if value else 1
        elif what == "filter":
            member.filter = SubscriptionFilter() if value else None
        elif what == "blocked":
            member.session.blocked = value
        else:
            member.session.full = value
        audience.recount(member)
        everybody = members.values()
        assert audience.stalled == sum(
            each.session.blocked or each.session.full or each.credit == 0 for each in everybody
        )
        assert audience.special == sum(
            each.credit >= 0 or each.filter is not None for each in everybody
        )


def test_the_ring_is_made_anew_only_when_somebody_comes_or_goes() -> None:
    audience = Audience()
    first, second = subscribe(audience, 1, 1), subscribe(audience, 2, 1)
    assert audience.next_ready(-1) is first
    ring = audience.ring
    first.credit = 0
    audience.recount(first)
    assert audience.next_ready(-1) is second
    audience.refresh()
    assert (audience.everyone, audience.ring) == ([2], [first, second])
    first.credit = 1
    audience.recount(first)
    assert audience.next_ready(-1) is first
    assert audience.ring is ring
    audience.remove(second)
    assert audience.next_ready(0) is first
    assert audience.ring is not ring
