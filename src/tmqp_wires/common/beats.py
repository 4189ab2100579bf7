"""Heartbeats: when a connection must say something, and when its peer has been silent too long."""

from __future__ import annotations

from typing import Final, final

__all__ = ["Heartbeats"]

_NEVER: Final = float("inf")


@final
class Heartbeats:
    """The clock of one connection's heartbeats in both directions; neither runs at first.

    Attributes: ``silence_s``, how long the peer may be silent, in seconds; 0 for any time.
    """

    __slots__ = ("_beat_due", "_beat_s", "_silence_due", "_spoke", "silence_s")

    def __init__(self) -> None:
        self.silence_s = 0.0
        self._silence_due = _NEVER
        self._beat_s = 0.0
        self._beat_due = _NEVER
        self._spoke = False

    def send_every(self, seconds: float, now: float) -> None:
        """Begin to send: in each period of this length in which nothing else was sent."""
        self._beat_s = seconds
        self._beat_due = now + seconds

    def expect_within(self, seconds: float, now: float) -> None:
        """Begin to expect something of the peer in every period of this length."""
        self.silence_s = seconds
        self._silence_due = now + seconds

    def heard(self, now: float) -> None:
        """The peer said something, or was not read from until now."""
        if self.silence_s:
            self._silence_due = now + self.silence_s

    def spoke(self) -> None:
        """Something was sent."""
        self._spoke = True

    def next_deadline(self) -> float | None:
        """When to call the following methods; None for never."""
        due = min(self._beat_due, self._silence_due)
        return None if due == _NEVER else due

    def must_beat(self, now: float) -> bool:
        """Whether a period has ended in which nothing was sent."""
        return now >= self._beat_due and not self._spoke

    def begin_period(self, now: float) -> None:
        """Begin the next period if one has ended; a heartbeat sent before belongs to that one."""
        if now >= self._beat_due:
            self._spoke = False
            self._beat_due = now + self._beat_s

    def is_lost(self, now: float) -> bool:
        """Whether the peer was silent for too long; then both clocks stop."""
        if now < self._silence_due:
            return False
        self._silence_due = self._beat_due = _NEVER
        return True
