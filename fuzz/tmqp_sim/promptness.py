"""Judges the shell from outside: nothing is forgotten, late, unbounded, or read too early.

What is checked is told from the hub and from what waits, not from the timers and lists that the
turn keeps for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tmqp_server.shell.outbound import BEHIND, FLUSHING, LOST
from tmqp_server.shell.saving import IDLE, LINGERING, PAUSED
from tmqp_server.shell.turn import READ, WAIT
from tmqp_sim.world import Violation

if TYPE_CHECKING:
    from tmqp_sim.server import Server

__all__ = ["Promptness"]

#: What rounding and the order of events of one moment may cost, in seconds.
_SLACK_S: Final = 0.001
#: How often a session that is being sent to is looked at, in seconds.
_BUSY_RECHECK_S: Final = 1.0


class Promptness:
    """The checker of one server."""

    def __init__(self, server: Server, lateness_s: float) -> None:
        self._server = server
        self._slack_s = lateness_s + _SLACK_S
        #: What waited for each blocked session when it was last looked at.
        self._waited: dict[int, int] = {}

    def check_reading(self, number: int) -> None:
        """A chunk is about to be worked off.

        :raises Violation: when something has to be waited for before.
        """
        server = self._server
        if server.hub.has_more(number):
            raise Violation("bound", f"session {number} is read from before its last chunk is done")

    def check_step(self, number: int, step: int) -> None:
        """A chunk was worked off, and its reader was told what to do.

        :raises Violation: when it is to read on, and its peer does not read.
        """
        out = self._server.turn.outbound(number)
        if step == READ and out is not None and out.blocked and out.bytes > out.marks.pause_bytes:
            raise Violation("bound", f"session {number} is read from though it does not read")

    def check(self) -> None:
        """Look at everything, after a turn.

        :raises Violation: when something is late, forgotten or unbounded.
        """
        server = self._server
        for number in server.sessions:
            self._check_session(number)
        saving = server.turn.saving
        assert saving is not None, "the simulated server saves"
        if saving.state == IDLE and saving.wants:
            raise Violation("promptness", "the storage idles, and there is something to do")
        if saving.state == LINGERING and saving.wants:
            raise Violation("promptness", "the storage lingers, and somebody waits")
        if saving.state in (LINGERING, PAUSED) and saving.due() + self._slack_s < server.now:
            raise Violation("promptness", "the storage rests for too long")

    def _check_session(self, number: int) -> None:
        server = self._server
        session = server.sessions[number]
        out = server.turn.outbound(number)
        if out is None:
            raise Violation("promptness", f"session {number} is over, and its link is open")
        marks = out.marks
        if out.bytes > marks.high_bytes and not out.blocked and out.state in (BEHIND, FLUSHING):
            raise Violation("bound", f"session {number} is behind, and not held back")
        if out.blocked:
            waited = self._waited.get(number)
            if waited is not None and out.bytes > max(waited, marks.max_bytes):
                raise Violation("bound", f"{out.bytes} bytes wait for session {number}")
            self._waited[number] = out.bytes
        else:
            self._waited.pop(number, None)
        if out.state in (BEHIND, FLUSHING, LOST) and out.due() + self._slack_s < server.now:
            raise Violation("promptness", f"session {number} stalls, and is not cut")
        if session.step == WAIT and not server.hub.has_more(number) and not out.blocked:
            raise Violation("promptness", f"session {number} is not read from, for no reason")
        deadline = server.hub.session_deadline(number)
        if deadline is None or out.bytes or server.hub.is_waiting(number):
            return
        if deadline + self._slack_s + _BUSY_RECHECK_S < server.now:
            raise Violation("promptness", f"session {number}: its deadline is not kept")
