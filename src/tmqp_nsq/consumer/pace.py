"""How many messages each connection may have in flight: RDY counts and backing off (N78, N167).

Pure: times are arguments, in seconds.
"""

from __future__ import annotations

import math

from tmqp.backoff import Backoff

__all__ = ["Pace"]


class Pace:
    """Divides ``max_in_flight`` among the connections of a consumer.

    With more connections than messages in flight, some have a turn of ``turn_s`` each.  After a
    failure nobody gets messages for a time that doubles with each further failure; then one
    connection gets one message, and its success or failure shortens or lengthens the next pause.
    """

    def __init__(
        self, max_in_flight: int, multiplier_s: float, max_backoff_s: float, turn_s: float
    ) -> None:
        self._max_in_flight = max_in_flight
        self._backoff = Backoff(multiplier_s * 2, max_backoff_s, 0.0)
        self._turn_s = turn_s
        #: The largest RDY that each connection's server takes.
        self._limits: dict[int, int] = {}
        self._level = 0
        self._resume_at = -math.inf
        self._turn = 0
        self._turned_at = -math.inf
        self._stopped = False

    def join(self, number: int, limit: int) -> None:
        """Add a connection."""
        self._limits[number] = max(1, limit)

    def leave(self, number: int) -> None:
        """Remove a connection."""
        self._limits.pop(number, None)

    def stop(self) -> None:
        """Let nobody get messages any more."""
        self._stopped = True

    def report(self, success: bool, now: float) -> None:
        """Tell how a message went.  What happens during a pause began before it, and says nothing
        new."""
        if now < self._resume_at or (success and not self._level):
            return
        if success:
            self._level -= 1
        elif self._pause_s(self._level) < self._backoff.most_s:
            self._level += 1
        if self._level:
            self._resume_at = now + self._pause_s(self._level)
            self._turn += 1

    def _pause_s(self, level: int) -> float:
        return self._backoff.delay_s(level) if level else 0.0

    def shares(self, now: float) -> dict[int, int]:
        """The RDY count of each connection."""
        numbers = list(self._limits)
        shares = dict.fromkeys(numbers, 0)
        if self._stopped or not numbers or now < self._resume_at:
            return shares
        if self._level:
            shares[numbers[self._turn % len(numbers)]] = 1
        elif len(numbers) <= self._max_in_flight:
            each = self._max_in_flight // len(numbers)
            for number in numbers:
                shares[number] = min(each, self._limits[number])
        else:
            if now - self._turned_at >= self._turn_s:
                self._turned_at = now
                self._turn += self._max_in_flight
            for place in range(self._max_in_flight):
                shares[numbers[(self._turn + place) % len(numbers)]] = 1
        return shares

    def deadline(self, now: float) -> float:
        """When the shares may change without an event; infinity if they do not."""
        if self._stopped or not self._limits:
            return math.inf
        if now < self._resume_at:
            return self._resume_at
        if not self._level and len(self._limits) > self._max_in_flight:
            return self._turned_at + self._turn_s
        return math.inf
