"""Coalesced deliveries: every session hears the same, in the same order, as without."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.line_door import LineDoor
from tests.tmqp_server.outputs import faults, sent, touched
from tmqp_server.engine.broker import Broker
from tmqp_server.hub.coalescing import Coalesced, Coalescer
from tmqp_server.hub.hub import Hub

SESSIONS = (1, 2, 3, 4)

lines = st.one_of(
    st.tuples(st.sampled_from(SESSIONS), st.sampled_from([b"join c", b"join d", b"list"])),
    st.tuples(
        st.sampled_from(SESSIONS),
        st.lists(
            st.sampled_from([b"push c %s", b"push d %s", b"list"]), min_size=1, max_size=12
        ).map(b"; ".join),
    ),
)


def heard(chunks: list[tuple[int, bytes]], portion_bytes: int) -> list[list[str]]:
    """What each session is told, with one door for the odd and one for the even."""
    hub = Hub(Broker(), portion_bytes)
    doors = [LineDoor("x"), LineDoor("y")]
    for number in SESSIONS:
        hub.open(number, doors[number % 2], 0.0)
        hub.receive(number, f"connect n{number}".encode(), 0.0)
    count = 0
    for number, chunk in chunks:
        first, *rest = chunk.split(b"%s")
        pushes = [b"m%d%s" % (count + place, piece) for place, piece in enumerate(rest)]
        count += len(rest)
        more = hub.receive(number, first + b"".join(pushes), 0.0)
        while more:
            for each in touched(hub):
                sent(hub, each)
            more = hub.go_on(number, 0.0)
        touched(hub)
    assert not faults(hub)
    return [doors[number % 2].sessions[number].words() for number in SESSIONS]


@pytest.mark.cold  # a compiled class cannot be patched
@settings(max_examples=200)
@given(st.lists(lines, max_size=12), st.sampled_from([0, 40, 300]))
def test_every_session_hears_the_same_as_without(
    chunks: list[tuple[int, bytes]], portion_bytes: int
) -> None:
    collected = heard(chunks, portion_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coalescer, "comes_again", lambda *_: False)
        assert collected == heard(chunks, portion_bytes)


def test_what_is_open_has_no_session_in_common() -> None:
    coalescer = Coalescer()
    coalescer.open.append(Coalesced([1, 2]))
    assert not coalescer.has_room_for(Coalesced([2, 3]))
    assert coalescer.has_room_for(Coalesced([3]))
    coalescer.open.append(Coalesced([3]))
    assert not coalescer.has_room_for(Coalesced([4]))
    assert coalescer.meets(3)
    assert not coalescer.meets(4)
    assert coalescer.meets_any([9, 1])
    assert not coalescer.meets_any([9, 4])
    assert [each.numbers for each in coalescer.take()] == [[1, 2], [3]]
    assert not coalescer.open


def test_a_list_is_known_by_itself_and_not_by_its_numbers() -> None:
    coalescer = Coalescer()
    numbers = [1]
    assert not coalescer.comes_again(numbers)
    assert coalescer.comes_again(numbers)
    assert not coalescer.comes_again([1])
    assert coalescer.comes_again(numbers)


def test_for_one_session_only_the_second_message_of_a_turn_is_coalesced() -> None:
    coalescer = Coalescer()
    one, two = [1], [1, 2]
    assert not coalescer.comes_again(one)
    assert not coalescer.comes_again(two)
    assert coalescer.comes_again(one)
    coalescer.end_turn()
    assert coalescer.comes_again(two)
    assert not coalescer.comes_again(one)
    assert coalescer.comes_again(one)


def test_a_thousand_consumers_share_one_piece_of_bytes() -> None:
    hub, door = Hub(Broker()), LineDoor()
    for number in range(1, 12):
        hub.open(number, door, 0.0)
        hub.receive(number, f"connect n{number}".encode(), 0.0)
        if number > 1:
            hub.receive(number, b"join c", 0.0)
    for session in door.sessions.values():
        session.pieces.clear()
    hub.receive(1, b"; ".join([b"push c m%d" % number for number in range(100)]), 0.0)
    pieces = [door.sessions[number].pieces[-1] for number in range(3, 12)]
    assert pieces[0].count(b"\n") > 50
    assert all(piece is pieces[0] for piece in pieces)
