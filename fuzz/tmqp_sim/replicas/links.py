"""The way from a server to the log: requests and answers that are late, lost, repeated, overtaken.

A request may be carried out although its answer never comes, long after its sender has given it
up, or twice.  The sender hears once of each request: the first answer in time, or that there is
none.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tmqp_server.storage.log import LogAnswer, LogRequest, WatchLog
from tmqp_sim.replicas.log_server import LogServer
from tmqp_sim.world import World

__all__ = ["Link", "LinkHabits"]

#: How often the log looks whether who watches can be answered, in seconds.
_LOOK_S: Final = 0.1


class LinkHabits:
    """How bad a link is: the longest usual delay in seconds, and chances of 1."""

    __slots__ = ("delay_s", "late", "loses", "repeats")

    def __init__(self, delay_s: float, loses: float, late: float, repeats: float) -> None:
        self.delay_s = delay_s
        self.loses = loses
        self.late = late
        self.repeats = repeats


class Link:
    """One server's way to the log.

    :param patience_s: after which a request counts as not answered.

    Attributes: ``cut_there`` and ``cut_back``, whether nothing arrives in a direction.
    """

    def __init__(
        self, world: World, log: LogServer, habits: LinkHabits, random: Random, patience_s: float
    ) -> None:
        self.cut_there = False
        self.cut_back = False
        self.habits = habits
        self._world = world
        self._log = log
        self._random = random
        self._patience_s = patience_s

    def ask(
        self,
        request: LogRequest,
        answered: Callable[[LogAnswer], None],
        unanswered: Callable[[], None],
    ) -> None:
        """Bring a request to the log; one of the two is called, once."""
        call = _Call(answered, unanswered)
        patience_s = self._patience_s
        if isinstance(request, WatchLog):
            patience_s += request.wait_s
        self._world.after(patience_s, self._give_up, call)
        self._send(request, call)
        if self._random.random() < self.habits.repeats:
            self._world.mark("a request was repeated")
            self._send(request, call)

    def _delay(self) -> float:
        habits = self.habits
        if self._random.random() < habits.late:
            return self._random.random() * 5.0
        return habits.delay_s * self._random.random()

    def _send(self, request: LogRequest, call: _Call) -> None:
        if self.cut_there or self._random.random() < self.habits.loses:
            self._world.mark("a request was lost")
            return
        self._world.after(self._delay(), self._arrive, request, call)

    def _arrive(self, request: LogRequest, call: _Call) -> None:
        if isinstance(request, WatchLog):
            self._look(request, call, self._world.now + request.wait_s)
            return
        if call.is_over:
            self._world.mark("a request was carried out after it was given up")
        self._answer(self._log.ask(request), call)

    def _look(self, request: WatchLog, call: _Call, until: float) -> None:
        if call.is_over:
            return
        if self._log.changed(request) or self._world.now >= until:
            self._answer(self._log.ask(request), call)
        else:
            self._world.after(_LOOK_S, self._look, request, call, until)

    def _answer(self, answer: LogAnswer, call: _Call) -> None:
        if self.cut_back or self._random.random() < self.habits.loses:
            self._world.mark("an answer was lost")
            return
        self._world.after(self._delay(), self._tell, answer, call)

    def _tell(self, answer: LogAnswer, call: _Call) -> None:
        if call.is_over:
            self._world.mark("an answer came twice or too late")
            return
        call.is_over = True
        call.answered(answer)

    def _give_up(self, call: _Call) -> None:
        if not call.is_over:
            call.is_over = True
            call.unanswered()


class _Call:
    """A request that is out."""

    __slots__ = ("answered", "is_over", "unanswered")

    def __init__(
        self, answered: Callable[[LogAnswer], None], unanswered: Callable[[], None]
    ) -> None:
        self.answered = answered
        self.unanswered = unanswered
        self.is_over = False
