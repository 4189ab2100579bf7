"""Messages that wait in one piece: no different from those that wait each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.outputs import faults, sent
from tests.tmqp_server.push_stage import PRODUCER, Stage, operation, pushes
from tmqp.constants import Operation
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_GONE, Message
from tmqp_server.engine.model.parking import ParkingList
from tmqp_server.engine.model.waiting import WaitingList
from tmqp_server.engine.model.waiting_parts import WaitingPart

ORIGIN: Final = Origin(1, "me", None, None, "tmqp")
#: The place of the pull queue among those of the stage, and of the push queue with acknowledges.
PULL, PUSH = 13, 2


class LatePart(WaitingPart):
    """Its messages are made when they are asked for, once."""

    def __init__(self, messages: list[Message]) -> None:
        super().__init__(None)
        self._messages = messages
        self.asked = 0

    def _make(self) -> list[Message]:
        self.asked += 1
        return self._messages


def message(number: int) -> Message:
    return Message(f"m{number}", ORIGIN, "c", 1, 1, None, 0, number)


ACTS: Final = st.lists(
    st.tuples(
        st.sampled_from(
            ("last", "first", "part", "part", "take", "take", "newest", "look", "look newest",
             "remove", "tidy", "snapshot")
        ),
        st.integers(0, 5),
    ),
    max_size=60,
)  # fmt: skip


def living(messages: Sequence[Message]) -> list[int]:
    return [each.sequence for each in messages if not each.marks & MARK_GONE]


@pytest.mark.parametrize("parks", [False, True])
@given(ACTS)
def test_a_list_with_parts_is_the_list_of_their_messages(
    parks: bool, acts: list[tuple[str, int]]
) -> None:
    waiting = ParkingList(WaitingList()) if parks else WaitingList()
    wanted: list[Message] = []
    number = 0
    for act, count in acts:
        coming = [message(number + each) for each in range(max(count, 1))]
        if act == "last":
            wanted.append(coming[0])
            waiting.put_last(coming[0])
        elif act == "first":
            wanted.insert(0, coming[0])
            waiting.put_first(coming[0])
        elif act == "part":
            wanted += coming
            waiting.put_part(LatePart(coming), len(coming))
        elif act == "tidy":
            waiting.tidy()
        elif act == "snapshot":
            assert living([m for each in waiting.snapshot() for m in each.messages()]) == living(
                wanted
            )
        elif wanted and act == "take":
            assert waiting.take() is wanted.pop(0)
        elif wanted and act == "newest":
            assert waiting.take_newest() is wanted.pop()
        elif wanted and act.startswith("look"):
            newest = act == "look newest"
            assert waiting.look(newest) is wanted[-1 if newest else 0]
        elif wanted and act == "remove":
            removed = waiting.messages()[count % len(wanted)]
            assert waiting.holds(removed)
            removed.marks |= MARK_GONE
            waiting.remove(removed)
            assert not waiting.holds(removed)
            wanted.remove(removed)
        number += len(coming)
        assert waiting.count == len(wanted)
    assert living(waiting.messages()) == living(wanted)


def test_many_tombstones_are_dropped_from_parts_as_well() -> None:
    waiting = WaitingList()
    waiting.put_last(message(0))
    waiting.put_part(LatePart([message(each) for each in range(1, 3_001)]), 3_000)
    late = LatePart([message(each) for each in range(3_001, 3_011)])
    waiting.put_part(late, 10)
    for each in waiting.snapshot()[1].messages()[:2_000]:
        each.marks |= MARK_GONE
        waiting.remove(each)
    waiting.tidy()
    assert late.asked == 0, "nobody wanted to know"
    assert sum(len(each.messages()) for each in waiting.snapshot()) == 1_011
    assert waiting.take().sequence == 0
    assert waiting.take().sequence == 2_001


def test_what_has_failed_or_been_sent_is_found_behind_parts() -> None:
    waiting = WaitingList()
    late = LatePart([message(1)])
    waiting.put_part(late, 1)
    again = message(2)
    again.attempts = 1
    waiting.put_last(again)
    assert waiting.sent_before() == [again]
    assert late.asked == 0, "nothing of it has been sent"
    assert waiting.take_failed() == []
    assert [each.sequence for each in waiting.messages()] == [1, 2]


def test_looking_through_a_list_leaves_its_parts_to_it() -> None:
    waiting = WaitingList()
    waiting.put_part(LatePart([message(each) for each in range(4)]), 4)
    (_, part) = waiting.snapshot()
    assert waiting.take_newest().sequence == 3
    assert waiting.take() is part.messages()[0]
    assert living(part.messages()) == [0, 1, 2, 3]


def stage_with(queue: int, count: int) -> Stage:
    """Two hundred messages wait, and were brought by one chunk."""
    stage = Stage(queue, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(PRODUCER, pushes(0, count, 0))
    found = next(iter(stage.broker.queues()))
    assert found.waiting_count() == found.regular.count == count
    return stage


@pytest.mark.parametrize("queue", [PULL, PUSH])
def test_a_run_that_nobody_takes_waits_in_one_piece(queue: int) -> None:
    stage = stage_with(queue, 200)
    found = next(iter(stage.broker.queues()))
    stage.say(PRODUCER, pushes(200, 100, 5))
    first, *parts = found.regular.snapshot()
    # Somebody has looked at the first one, to see how long it has waited.
    assert len(first.messages()) == 200
    assert [each.made is None for each in parts] == [True]
    assert found.count == 300
    assert found.bytes == sum(each.size for each in found.regular.messages())


def test_few_messages_wait_each_by_itself() -> None:
    stage = stage_with(PULL, 200)
    found = next(iter(stage.broker.queues()))
    stage.say(PRODUCER, pushes(200, 8, 0))
    stage.say(PRODUCER, pushes(208, 7, 0))
    assert [each.is_loose for each in found.regular.snapshot()] == [True, False, True]


def test_what_waits_in_one_piece_is_cleared_bit_by_bit() -> None:
    stage = stage_with(PULL, 200)
    stage.say(PRODUCER, pushes(200, 200, 0))
    found = next(iter(stage.broker.queues()))
    clear = operation(Operation.CLEAR_MESSAGES, status="pull", terms="Messages=yes")
    stage.say(PRODUCER, clear)
    while stage.broker.next_deadline() is not None:
        stage.hub.on_broker_deadline(0.0)
    assert found.counters.cleared == 400
    assert found.count == found.bytes == 0
    assert faults(stage.hub) == {}


def test_a_consumer_that_comes_later_gets_what_waited_in_one_piece_in_its_order() -> None:
    stage = stage_with(PUSH, 200)
    stage.say(PRODUCER, pushes(200, 100, 0))
    stage.say(2, operation(Operation.JOIN))
    heard = stage.heard[2] + sent(stage.hub, 2)
    places = [heard.find(f"m{number}client1".encode()) for number in range(300)]
    assert -1 not in places
    assert places == sorted(places)
