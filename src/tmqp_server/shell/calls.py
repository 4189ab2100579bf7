"""Calls to code outside: HTTP bindings and channels' event handlers, each in a bounded line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, final

from tmqp_server.engine.commands import HttpAnswered
from tmqp_server.engine.effects import CallHttp, TellHandler
from tmqp_server.engine.model.histograms import SHORT_BOUNDS_US, Histogram
from tmqp_server.shell.lines import Line
from tmqp_server.shell.tallies import count_one
from tmqp_server.shell.world import ERROR, WARNING, Abandon, Call, Log, Tell, WorldEffect

__all__ = ["GIVEN_UP", "MOST_EVENTS", "CallSettings", "Calls"]

#: Events that may wait for one event handler.
MOST_EVENTS: Final = 10_000
_GATEWAY_TIMEOUT: Final = 504
#: The name for a call that was not answered in time.
GIVEN_UP: Final = "given_up"


@final
class CallSettings:
    """The limits for code outside: seconds for a hook; seconds for an HTTP call, and how many run
    concurrently; the names of the event handlers, and how many events may wait for each.
    """

    __slots__ = (
        "event_handlers",
        "events_waiting",
        "hook_timeout_s",
        "http_at_once",
        "http_timeout_s",
    )

    def __init__(
        self,
        hook_timeout_s: float = 10.0,
        http_timeout_s: float = 10.0,
        http_at_once: int = 16,
        event_handlers: Sequence[str] = (),
        events_waiting: int = MOST_EVENTS,
    ) -> None:
        self.hook_timeout_s = hook_timeout_s
        self.http_timeout_s = http_timeout_s
        self.http_at_once = http_at_once
        self.event_handlers = event_handlers
        self.events_waiting = events_waiting


@final
class Calls:
    """The lines of one server.

    :param world: gets the calls.
    """

    def __init__(self, world: list[WorldEffect], settings: CallSettings) -> None:
        self._world = world
        self._http_timeout_s = settings.http_timeout_s
        self._http: Line[Call] = Line(
            settings.http_at_once, 0, settings.http_timeout_s, wait_counts=True
        )
        self._handlers: dict[str, Line[Tell]] = {}
        for name in settings.event_handlers:
            self._handlers[name] = Line(
                1, settings.events_waiting, settings.hook_timeout_s, wait_counts=False
            )
        #: HTTP calls that were answered, by the class of the status (``2xx``), or given up; and how
        #: long the answered ones took, including the wait.
        self.counts: dict[str, int] = {}
        self.seconds = Histogram(SHORT_BOUNDS_US)
        #: Events that were dropped since a handler got its last one.
        self._losing: dict[str, int] = {}

    @property
    def lost_events(self) -> int:
        """How many events were dropped because too many waited for their handler."""
        return sum([line.lost for line in self._handlers.values()])

    @property
    def is_told(self) -> bool:
        """Whether the event handlers have handled all events."""
        return all([line.is_idle for line in self._handlers.values()])

    def call(self, call: CallHttp, now: float) -> None:
        """Make an HTTP call as soon as there is room; its time limit begins now."""
        wanted = Call(call)
        wanted.wanted_at = now
        self._http.join(wanted, now)
        self._start_calls(now)

    def answered(self, call: Call, status: int, now: float) -> bool:
        """Handle the end of a call; return False if it was given up before."""
        waited_for = self._http.done(call)
        if waited_for:
            count_one(self.counts, f"{status // 100}xx")
            self.seconds.observe(now - call.wanted_at)
        self._start_calls(now)
        return waited_for

    def _start_calls(self, now: float) -> None:
        while (place := self._http.start(now)) is not None:
            self._world.append(place.item)

    def tell(self, notification: TellHandler, now: float) -> None:
        """Pass an event to a handler after the earlier ones; drop it if too many wait."""
        name = notification.handler
        line = self._handlers[name]
        losing = self._losing.get(name, 0)
        if not line.join(Tell(notification), now):
            if not losing:
                text = f"the event handler {name!r} is too slow: events are lost"
                self._world.append(Log(ERROR, text, 0, None, "events"))
            self._losing[name] = losing + 1
            return
        if losing:
            del self._losing[name]
            text = f"the event handler {name!r} missed {losing} events"
            self._world.append(Log(ERROR, text, 0, None, "events"))
        self._start_notifying(line, now)

    def told(self, tell: Tell, now: float) -> None:
        """Handle the end of a handler's work on an event."""
        line = self._handlers[tell.notification.handler]
        line.done(tell)
        self._start_notifying(line, now)

    def _start_notifying(self, line: Line[Tell], now: float) -> None:
        while (place := line.start(now)) is not None:
            self._world.append(place.item)

    def due(self) -> float:
        """When :meth:`give_up` has something to do; infinity for never."""
        if not self._handlers and self._http.is_idle:
            return math.inf
        return min([self._http.due(), *[line.due() for line in self._handlers.values()]])

    def give_up(self, now: float) -> list[HttpAnswered]:
        """Abandon calls that take too long; return the broker's commands about HTTP calls."""
        answers: list[HttpAnswered] = []
        while (late := self._http.take_late(now)) is not None:
            call = late.item
            if late.over:
                self._world.append(Abandon(call))
            count_one(self.counts, GIVEN_UP)
            url = call.call.url.partition("?")[0]  # a query may contain secrets
            text = f"{call.call.method} {url}: no answer within {self._http_timeout_s:g} s"
            self._world.append(Log(WARNING, text, 0, None, "http"))
            answers.append(HttpAnswered(call.call.ticket, _GATEWAY_TIMEOUT, b""))
        for line in self._handlers.values():
            while (late_event := line.take_late(now)) is not None:
                self._world.append(Abandon(late_event.item))
        return answers
