"""How fast an address may try to log in: after a refusal, slowly and one attempt at a time.

As long as no attempt of an address was refused, several are decided concurrently.  A refusal is
answered after a delay, and until then no further attempt of the address is decided, on any
connection.  The delay begins with a quarter of a second and doubles up to four seconds; from the
twentieth refusal on, it doubles up to a minute.  After a minute without a refusal, an address
begins again.  So the guesses of an address are limited, whatever its number of connections.  An
attempt that waits too long for its turn is refused without a decision.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import Final, final

from tmqp.backoff import Backoff
from tmqp_server.access.gate import Question
from tmqp_server.shell.rates import address_key

__all__ = ["LogIns"]

#: The delay of a refusal in seconds: for the first one of an address, and at most.
_PAUSES: Final = Backoff(0.25, 4.0, 0.0)
#: The same from so many refusals on.
_MANY: Final = 20
_LONG_PAUSES: Final = Backoff(4.0, 60.0, 0.0)
#: Seconds after the last pause in which an address that is not refused is forgiven.
_FORGIVEN_AFTER_S: Final = 60.0
#: The most addresses without an attempt that are remembered; then the oldest is dropped.
_ADDRESSES: Final = 1_024
#: Attempts of an address that are decided at once, as long as none was refused.
_AT_ONCE: Final = 16
#: Seconds that an attempt waits for its turn.
_PATIENCE_S: Final = 10.0


@final
class _Attempts:
    """The attempts of one address: ``free_at`` is when the last delay is over."""

    __slots__ = ("asked", "free_at", "refusals", "waiting")

    def __init__(self) -> None:
        self.refusals = 0
        self.free_at = 0.0
        #: Sessions about which a question is open.
        self.asked: set[int] = set()
        #: Those whose turn comes, and until when they wait.
        self.waiting: deque[tuple[Question, float]] = deque()

    def may_begin(self, now: float) -> bool:
        """Return whether another attempt may be decided now."""
        if self.refusals and now >= self.free_at + _FORGIVEN_AFTER_S:
            self.refusals = 0
        if self.refusals:
            return not self.asked and now >= self.free_at
        return len(self.asked) < _AT_ONCE


@final
class LogIns:
    """The attempts of all addresses."""

    def __init__(self) -> None:
        self._addresses: dict[str, _Attempts] = {}
        self._times: list[tuple[float, str]] = []

    def begin(self, host: str, question: Question, now: float) -> bool:
        """Note an attempt; return True if it may be decided now, otherwise it waits
        (:meth:`take_ready`)."""
        key = address_key(host)
        attempts = self._addresses.get(key)
        if attempts is None:
            attempts = self._addresses[key] = _Attempts()
            self._forget_oldest()
        if not attempts.waiting and attempts.may_begin(now):
            attempts.asked.add(question.session)
            return True
        until = now + _PATIENCE_S
        attempts.waiting.append((question, until))
        self._look_at(until, key)
        self._look_at(max(attempts.free_at, now), key)
        return False

    def refused(self, host: str, session: int, now: float) -> float:
        """Note a refused attempt; return for how many seconds its answer is delayed."""
        key = address_key(host)
        attempts = self._addresses[key]
        attempts.asked.discard(session)
        if now >= attempts.free_at + _FORGIVEN_AFTER_S:
            attempts.refusals = 0
        attempts.refusals += 1
        count = attempts.refusals
        pause_s = _PAUSES.delay_s(count)
        if count >= _MANY:
            pause_s = _LONG_PAUSES.delay_s(count - _MANY + 1)
        # Those that were decided together wait for one another's pauses.
        attempts.free_at = max(attempts.free_at, now + pause_s)
        self._look_at(attempts.free_at, key)
        return pause_s

    def ended(self, host: str, session: int, now: float) -> None:
        """Forget an attempt that was allowed, or whose connection has ended."""
        key = address_key(host)
        attempts = self._addresses.get(key)
        if attempts is None:
            return
        attempts.asked.discard(session)
        for place in attempts.waiting:
            if place[0].session == session:
                attempts.waiting.remove(place)
                break
        if attempts.waiting:
            self._look_at(now, key)

    def due(self) -> float:
        """When :meth:`take_ready` is to be called; infinity for never."""
        return self._times[0][0] if self._times else math.inf

    def take_ready(self, now: float) -> tuple[list[Question], list[Question]]:
        """Return the attempts that may be decided now, and those that have waited too long."""
        ready: list[Question] = []
        late: list[Question] = []
        while self._times and self._times[0][0] <= now:
            key = heapq.heappop(self._times)[1]
            attempts = self._addresses.get(key)
            if attempts is None:
                continue
            waiting = attempts.waiting
            while waiting and waiting[0][1] <= now:
                late.append(waiting.popleft()[0])
            while waiting and attempts.may_begin(now):
                question = waiting.popleft()[0]
                attempts.asked.add(question.session)
                ready.append(question)
        return ready, late

    def _look_at(self, when: float, key: str) -> None:
        heapq.heappush(self._times, (when, key))

    def _forget_oldest(self) -> None:
        if len(self._addresses) <= _ADDRESSES:
            return
        for key, attempts in self._addresses.items():
            if not (attempts.asked or attempts.waiting):
                del self._addresses[key]
                return
