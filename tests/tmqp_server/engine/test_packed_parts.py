"""Messages that wait as bytes: no different from those that wait as objects."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.outputs import faults, sent
from tests.tmqp_server.push_stage import (
    CONSUMERS,
    PRODUCER,
    QUEUES,
    Stage,
    acts,
    compare_stages,
    operation,
    pushes,
)
from tmqp import Frame, MessageType
from tmqp.constants import Operation
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_GONE, MARK_HIGH, MARK_SAVED, Message, Wires
from tmqp_server.engine.model.packed_parts import MOST_PACKED, PackedPart, packed_form
from tmqp_server.engine.model.parking import ParkingList
from tmqp_server.engine.model.waiting import WaitingList

ORIGIN: Final = Origin(1, "me", None, None, "tmqp")
WIRES: Final = LetterWires(Letters())
LIMITS: Final = EngineLimits()
#: The place of the pull queue among those of the stage, and of the push queue with acknowledges.
PULL, PUSH = 13, 2


def frame(number: int, size: int = 3) -> Frame:
    return Frame.build(
        MessageType.QUEUE_MESSAGE, "c", 1, bytes(size), message_id=f"m{number}", source="me"
    )


def message(number: int, size: int = 3) -> Message:
    wire = frame(number, size)
    return Message(wire.message_id, ORIGIN, "c", 1, len(wire.raw), wire, 0, number)


def raw_of(each: Message) -> bytes:
    packed = WIRES.pack(each)
    assert packed is not None
    return packed


def facts(each: Message) -> tuple[object, ...]:
    return (
        each.message_id, each.producer, each.channel, each.queue_id, each.size, each.wire,
        each.marks, each.sequence, each.sent_at, each.attempts,
    )  # fmt: skip


@settings(max_examples=30)
@given(
    st.sampled_from(range(len(QUEUES))),
    st.lists(acts, min_size=1, max_size=10),
    st.booleans(),
    st.sampled_from((0, 3)),
    st.sampled_from(((1_000, 1 << 20), (9, 9_999))),
)
def test_packed_messages_are_answered_for_as_others(
    queue: int,
    script: list[tuple[str, int, int]],
    runs: bool,
    packs_behind: int,
    bounds: tuple[int, int],
) -> None:
    limits = EngineLimits(max_messages_per_queue=bounds[0], max_queue_bytes=bounds[1])
    plain, packed = [
        Stage(queue, runs=packs and runs, limits=limits, portion=1 << 20,
              packs_behind=packs_behind if packs else None)
        for packs in (False, True)
    ]  # fmt: skip
    joins = [("join", number, 0) for number in range(2, 2 + len(script) % 5)]
    compare_stages(plain, packed, [("push", 20, 0), *joins, *script])


@pytest.mark.parametrize("parks", [False, True])
@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ("packed", "packed", "packed", "last", "first", "take", "newest", "look",
                 "look newest", "remove", "tidy", "snapshot")
            ),
            st.integers(0, 5),
        ),
        max_size=60,
    )
)  # fmt: skip
def test_a_list_with_packed_messages_is_the_list_of_them(
    parks: bool, acts: list[tuple[str, int]]
) -> None:
    waiting = ParkingList(WaitingList()) if parks else WaitingList()
    wanted: list[tuple[object, ...]] = []
    for number, (act, count) in enumerate(acts):
        coming = message(number)
        coming.sent_at = float(number)
        if act == "packed":
            for each in range(count):
                more = message(number + 1_000 * each)
                wanted.append(facts(more))
                waiting.put_packed(more, raw_of(more), WIRES)
        elif act == "last":
            wanted.append(facts(coming))
            waiting.put_last(coming)
        elif act == "first":
            wanted.insert(0, facts(coming))
            waiting.put_first(coming)
        elif act == "tidy":
            waiting.tidy()
        elif act == "snapshot":
            held = waiting.snapshot()
            waiting.put_packed(coming, raw_of(coming), WIRES)
            seen = [facts(m) for part in held for m in part.messages() if not m.marks & MARK_GONE]
            assert seen == wanted, "what comes later is not seen"
            wanted.append(facts(coming))
        elif wanted and act == "take":
            assert facts(waiting.take()) == wanted.pop(0)
        elif wanted and act == "newest":
            assert facts(waiting.take_newest()) == wanted.pop()
        elif wanted and act.startswith("look"):
            newest = act == "look newest"
            assert facts(waiting.look(newest)) == wanted[-1 if newest else 0]
        elif wanted and act == "remove":
            removed = waiting.messages()[count % len(wanted)]
            wanted.remove(facts(removed))
            removed.marks |= MARK_GONE
            waiting.remove(removed)
        assert waiting.count == len(wanted)
    assert [facts(each) for each in waiting.messages()] == wanted


def deep_stage(queue: int, count: int) -> Stage:
    """So many messages, brought one by one, wait behind three others."""
    stage = Stage(queue, runs=False, limits=LIMITS, portion=1 << 20, packs_behind=3)
    for number in range(3 + count):
        stage.say(PRODUCER, pushes(number, 1, 0))
    return stage


def test_messages_that_come_alone_wait_together() -> None:
    stage = deep_stage(PULL, MOST_PACKED + 2)
    (found, *_) = stage.broker.queues()
    first, *parts = found.regular.snapshot()
    assert len(first.messages()) == 3
    assert [type(each) for each in parts] == [PackedPart, PackedPart]
    assert [each.made for each in parts] == [None, None]
    assert [len(each.messages()) for each in parts] == [MOST_PACKED, 2]


def test_a_consumer_that_comes_later_gets_what_was_packed_in_its_order() -> None:
    stage = deep_stage(PUSH, 200)
    stage.say(CONSUMERS[0], operation(Operation.JOIN))
    heard = stage.heard[CONSUMERS[0]] + sent(stage.hub, CONSUMERS[0])
    places = [heard.find(f"m{number}client1".encode()) for number in range(203)]
    assert -1 not in places
    assert places == sorted(places)
    assert faults(stage.hub) == {}


def test_what_was_packed_is_cleared() -> None:
    stage = deep_stage(PULL, 200)
    clear = operation(Operation.CLEAR_MESSAGES, status="pull", terms="Messages=yes")
    stage.say(PRODUCER, clear)
    while stage.broker.next_deadline() is not None:
        stage.hub.on_broker_deadline(0.0)
    (found, *_) = stage.broker.queues()
    assert found.counters.cleared == 203
    assert found.count == found.bytes == 0


def rare() -> Message:
    """One that expires."""
    found = message(1)
    found.rarely().expires_at = 1.0
    return found


def saved() -> Message:
    """One that the storage has."""
    found = message(1)
    found.marks |= MARK_SAVED
    return found


def sent_before() -> Message:
    """One that was put back."""
    found = message(1)
    found.attempts = 1
    return found


def renamed() -> Message:
    """One whose id is not that of its frame."""
    found = message(1)
    found.message_id = "other"
    return found


def nameless() -> Message:
    """One that nobody can acknowledge."""
    wire = Frame.build(MessageType.QUEUE_MESSAGE, "c", 1, b"x")
    return Message("", ORIGIN, "c", 1, len(wire.raw), wire, 0, 1)


def foreign() -> Message:
    """One of another protocol."""
    return Message("m1", ORIGIN, "c", 1, 3, b"abc", 0, 1)


@pytest.mark.parametrize("make", [rare, saved, sent_before, renamed, nameless, foreign])
def test_of_which_the_bytes_do_not_say_all_waits_as_it_is(make: object) -> None:
    assert callable(make)
    assert packed_form(make(), WIRES) is None


def test_a_large_message_waits_as_it_is() -> None:
    head = message(1, 0).size
    assert packed_form(message(1, 4_096 - head - 2), WIRES) is not None
    assert packed_form(message(1, 4_096 - head - 1), WIRES) is None


def test_without_somebody_who_knows_wires_nothing_is_packed() -> None:
    assert packed_form(message(1), Wires()) is None


def test_few_packed_messages_among_others_wait_as_they_are() -> None:
    """A part takes memory of its own, more than one message."""
    waiting = WaitingList()
    for number in range(20):
        coming = message(2 * number)
        waiting.put_packed(coming, raw_of(coming), WIRES)
        waiting.put_last(message(2 * number + 1))
    assert len(waiting.snapshot()) <= 3
    assert [each.sequence for each in waiting.messages()] == list(range(40))


def test_a_packed_message_keeps_its_priority() -> None:
    part = PackedPart(1, WIRES)
    high = message(1)
    high.marks = MARK_HIGH
    assert part.take_in(high, raw_of(high))
    assert part.messages()[0].high_priority
    assert not part.take_in(high, raw_of(high)), "its messages are somebody's already"
