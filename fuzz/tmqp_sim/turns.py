"""Measures the turns of the simulated event loop, as the real one does, and judges what is told.

Nothing takes time in this world but a process that is suspended: that is a turn in which the server
was busy for so long, with one of its connections or by itself.  A line in the log says so, unless
there were ten in that minute, and the server remembers it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from tmqp_server.shell.pulse import QUICK_S
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import Log, WorldEffect
from tmqp_sim.host import Guest
from tmqp_sim.world import Violation, World

__all__ = ["Turns"]

#: How many of the slow turns one connection is the reason of, and for how much of their time.
_WITH_CONNECTION: Final = 0.6
_SHARES: Final = (0.3, 0.6, 1.0)
#: Lines in so many seconds.
_LINES: Final = 10
_WINDOW_S: Final = 60.0
_SLACK_S: Final = 1e-6


class _Carrier(Protocol):
    """The server, as far as it is measured here."""

    world: World
    turn: Turn
    name: str

    @property
    def now(self) -> float:
        """What its clock reads."""

    @property
    def guests(self) -> Mapping[int, Guest]:
        """Its sessions by number."""


class Turns:
    """The turns of one server."""

    def __init__(self, server: _Carrier) -> None:
        self._server = server
        self._random = server.world.child(f"{server.name} turns")
        #: When the log had its lines, of this minute.
        self._lines: deque[float] = deque()

    def begin(self) -> None:
        """A life begins, and with it the measuring."""
        self._lines.clear()
        self.woke()

    def woke(self) -> None:
        """A turn begins; the previous one it took no time."""
        pulse = self._server.turn.pulse
        pulse.quick += 1
        pulse.wake(self._server.now)

    def slept(self, began_s: float) -> None:
        """The process was suspended since then, by its clock: a turn that took so long is over.

        :raises Violation: when what is reported about it is not what it was.
        """
        server = self._server
        pulse = server.turn.pulse
        now = server.now
        took_s = now - began_s
        if took_s <= QUICK_S:
            return
        numbers = [*server.guests]
        number, share = 0, 1.0
        if numbers and self._random.random() < _WITH_CONNECTION:
            number, share = self._random.choice(numbers), self._random.choice(_SHARES)
        # It began with something else, which took the rest.
        pulse.woke = began_s
        pulse.number, pulse.at = number, now - share * took_s
        pulse.gap, pulse.who = (1.0 - share) * took_s, 0
        count, total = pulse.slow_count, pulse.turns.total
        slow = pulse.end(now)
        if abs(pulse.turns.total - total - took_s * 1_000_000) > 2:
            raise Violation("turns", f"a turn of {took_s:.6f} s is not counted as it is")
        if took_s <= pulse.slow_s:
            if slow is not None:
                raise Violation("turns", f"a turn of {took_s:.3f} s is told to be slow")
            return
        if slow is None or pulse.slow_count != count + 1 or pulse.slow[-1] is not slow:
            raise Violation("turns", f"nothing is told of a turn of {took_s:.3f} s")
        reason = number if share > 1.0 - share else 0
        longest_s = max(share, 1.0 - share) * took_s
        if slow.session != reason or abs(slow.session_s - longest_s) > _SLACK_S:
            text = f"session {slow.session} is told to have taken {slow.session_s:.3f} s"
            raise Violation("turns", f"{text}, and {reason} took {longest_s:.3f} s")
        server.turn.turn_was_slow(slow)
        self._check_lines(server.turn.take_effects(), reason, took_s)

    def _check_lines(self, effects: Sequence[WorldEffect], session: int, took_s: float) -> None:
        """The log has one line about it, unless there were many, and nothing else comes of it."""
        now = self._server.now
        if self._lines and now - self._lines[0] >= _WINDOW_S:
            self._lines.clear()
        if len(self._lines) >= _LINES:
            self._server.world.mark("slow turns are too many to be logged")
            if effects:
                raise Violation("turns", f"the log has line {len(self._lines) + 1} in a minute")
            return
        self._lines.append(now)
        self._server.world.mark("slow turn logged")
        lines = [each for each in effects if isinstance(each, Log) and each.topic == "slow"]
        if len(effects) != 1 or [each.session for each in lines] != [session]:
            raise Violation("turns", f"of a turn of {took_s:.3f} s with {session}: {effects}")
