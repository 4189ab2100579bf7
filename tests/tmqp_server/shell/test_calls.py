"""Calls to code outside: how many at once, how many wait, and what comes too late."""

from __future__ import annotations

import math

from tmqp_server.engine.effects import CallHttp, TellHandler
from tmqp_server.engine.events import MESSAGE_PRODUCED, ChannelFact
from tmqp_server.shell.calls import MOST_EVENTS, Calls, CallSettings
from tmqp_server.shell.lines import Line
from tmqp_server.shell.world import Abandon, Call, Log, Tell, WorldEffect


class Outside:
    """Calls, and what they want of the world."""

    def __init__(self) -> None:
        self.world: list[WorldEffect] = []
        self.calls = Calls(self.world, CallSettings(1.0, 1.0, 2, ("slow", "quick")))

    def call(self, ticket: int, now: float = 0.0) -> None:
        self.calls.call(CallHttp(ticket, "GET", "http://h/x?secret=1", [], b""), now)

    def tell(self, handler: str, now: float = 0.0) -> None:
        self.calls.tell(TellHandler(handler, MESSAGE_PRODUCED, ChannelFact("c", 1, 0)), now)

    def made(self) -> list[Call]:
        return [each for each in self.world if isinstance(each, Call)]

    def told(self) -> list[Tell]:
        return [each for each in self.world if isinstance(each, Tell)]

    def logs(self) -> list[str]:
        return [each.text for each in self.world if isinstance(each, Log)]


def test_so_many_calls_are_made_at_once() -> None:
    outside = Outside()
    for ticket in (1, 2, 3):
        outside.call(ticket)
    assert [each.call.ticket for each in outside.made()] == [1, 2]
    assert outside.calls.answered(outside.made()[0], 200, 0.5)
    assert [each.call.ticket for each in outside.made()] == [1, 2, 3]


def test_a_late_call_is_given_up_and_its_wait_counts() -> None:
    outside = Outside()
    for ticket in (1, 2, 3):
        outside.call(ticket, 0.5)
    assert outside.calls.due() == 1.5
    answers = outside.calls.give_up(1.5)
    assert [(each.ticket, each.status) for each in answers] == [(1, 504), (2, 504), (3, 504)]
    assert sum(isinstance(each, Abandon) for each in outside.world) == 2  # one had not begun
    assert outside.logs() == ["GET http://h/x: no answer within 1 s"] * 3
    assert outside.calls.due() == math.inf
    # What is given up keeps its place until it has ended.
    outside.call(4, 2.0)
    assert len(outside.made()) == 2
    assert not outside.calls.answered(outside.made()[0], 200, 2.0)
    assert outside.made()[-1].call.ticket == 4


def test_a_handler_hears_one_event_at_a_time_and_delays_nobody_else() -> None:
    outside = Outside()
    outside.tell("slow")
    outside.tell("slow")
    outside.tell("quick")
    assert [each.notification.handler for each in outside.told()] == ["slow", "quick"]
    assert not outside.calls.is_told
    for _ in range(3):
        outside.calls.told(outside.told()[-1], 0.0)
        outside.calls.told(outside.told()[0], 0.0)
    assert len(outside.told()) == 3
    outside.calls.told(outside.told()[-1], 0.0)
    assert outside.calls.is_told


def test_an_event_may_wait_but_not_be_told_for_ever() -> None:
    outside = Outside()
    outside.tell("slow", 0.0)
    outside.tell("slow", 0.0)
    assert outside.calls.give_up(1.0) == []
    assert isinstance(outside.world[-1], Abandon)
    outside.calls.told(outside.told()[0], 5.0)
    assert outside.calls.due() == 6.0


def test_what_finds_no_room_is_lost_and_told_of_once() -> None:
    outside = Outside()
    for _ in range(MOST_EVENTS + 4):
        outside.tell("slow")
    assert outside.calls.lost_events == 3
    assert outside.logs() == ["the event handler 'slow' is too slow: events are lost"]
    outside.calls.told(outside.told()[0], 0.0)
    outside.tell("slow")
    assert outside.logs()[-1] == "the event handler 'slow' missed 3 events"
    assert outside.calls.lost_events == 3


def test_a_line_without_a_bound_takes_everything() -> None:
    line: Line[int] = Line(1, 0, 1.0, wait_counts=False)
    assert all(line.join(number, 0.0) for number in range(100))
    place = line.start(5.0)
    assert place is not None
    assert place.until == 6.0
    assert line.start(5.0) is None
    assert not line.done(99)
    assert line.done(0)
