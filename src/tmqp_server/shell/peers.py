"""The peers of one server: the waiting output of each, and the effects for the world."""

from __future__ import annotations

import math
from typing import Final, final

from tmqp_server.shell.outbound import Marks, Outbound
from tmqp_server.shell.tallies import ShellTally
from tmqp_server.shell.timers import Timers
from tmqp_server.shell.world import WARNING, Drained, Log, Wake, WorldEffect

__all__ = ["Peers", "Pressure"]


#: Connections of one portion.
_PORTION: Final = 250


@final
class Pressure:
    """The output that waits for peers; complete once :meth:`go_on` has returned True.

    Attributes: the number of ``blocked`` connections, whose deliveries are paused, and of
    ``waiting`` bytes.
    """

    def __init__(self, outs: list[Outbound]) -> None:
        self.blocked = 0
        self.waiting = 0
        self._outs = outs
        self._at = 0

    def go_on(self) -> bool:
        """Add up a portion; return True if it was the last one."""
        end = min(self._at + _PORTION, len(self._outs))
        for place in range(self._at, end):
            out = self._outs[place]
            self.waiting += out.bytes
            if out.blocked:
                self.blocked += 1
        self._at = end
        return end == len(self._outs)


class Peers:
    """An :class:`Outbound` for each connection; ``Connections`` decides about them.

    :param marks: the limits for a peer that reads slowly.

    Attributes: ``tally``, the counters, for metrics.
    """

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.tally = ShellTally()
        self._world: list[WorldEffect] = []
        self._outs: dict[int, Outbound] = {}
        self._timers = Timers()
        self._told_due = math.inf  # what the world was last told to wait for

    def outbound(self, number: int) -> Outbound | None:
        """Return the waiting output for a session's peer; None if the session has ended."""
        return self._outs.get(number)

    def take_effects(self) -> list[WorldEffect]:
        """Return the effects for the world since the last call, in order."""
        found = self._world[:]
        self._world.clear()
        return found

    def piece(self, number: int) -> bytes:
        """Return the next bytes to write, from :meth:`offset` on; empty when the writer has
        finished."""
        out = self._outs.get(number)
        return b"" if out is None else out.piece()

    def offset(self, number: int) -> int:
        """Return where in its piece a session's writer continues."""
        out = self._outs.get(number)
        return 0 if out is None else out.offset

    def _tell_drained(self, out: Outbound) -> None:
        if out.awaited and not out.blocked:
            out.awaited = False
            self._world.append(Drained(out.number))

    def pressure(self) -> Pressure:
        """Return the waiting output for all peers, to be added up in portions."""
        return Pressure(list(self._outs.values()))

    def open_by_door(self) -> dict[str, int]:
        """How many connections are open, by the name of their door."""
        found: dict[str, int] = {}
        for door, tally in self.tally.doors.items():
            found[door] = tally.opened - sum(tally.closed.values())
        return found

    # -- time ------------------------------------------------------------------------------------

    def _put_nearer(self, due: float, number: int) -> None:
        if due < self._timers.due(number):
            self._put(due, number)

    def _put(self, due: float, number: int) -> None:
        self._timers.put(due, number)
        self.wake(due)

    def warn(self, text: str) -> None:
        """Log a warning that concerns no particular session."""
        self._world.append(Log(WARNING, text))

    def wake(self, due: float) -> None:
        """Let the world call again at this time, if it would call later."""
        if due < self._told_due:
            self._told_due = due
            self._world.append(Wake())
