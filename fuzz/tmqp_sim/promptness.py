"""Judges the shell from outside: nothing is forgotten, late, unbounded, or read too early.

What is checked is told from the hub and from what waits, not from the timers and lists that the
turn keeps for itself.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.shell.outbound import BEHIND, FLUSHING, LOST, OPEN
from tmqp_server.shell.saving import IDLE, LINGERING, PAUSED
from tmqp_server.shell.steps import READ, WAIT
from tmqp_server.shell.world import INTERNAL_ERROR
from tmqp_sim.host import WEB_SOCKET, Guest, Host
from tmqp_sim.world import Violation

__all__ = ["Promptness"]

#: What rounding and the order of events of one moment may cost, in seconds.
_SLACK_S: Final = 0.001
#: How often a session that is being sent to is examined, in seconds.
_BUSY_RECHECK_S: Final = 1.0
#: Ends that the client wanted: all that it had said before counts.
_POLITE: Final = ("terminated", "end-of-stream")


class Promptness:
    """The checker of one server."""

    def __init__(self, server: Host, lateness_s: float) -> None:
        self._server = server
        self._slack_s = lateness_s + _SLACK_S
        #: What waited for each blocked session when it was last looked at.
        self._waited: dict[int, int] = {}
        #: The hub's count of commands that were not carried out, before this turn.
        self._dropped = 0
        #: Sessions of which a chunk was read although they had asked for more.
        self._joined: dict[int, None] = {}
        #: There are such sessions: what they would have asked for is dropped when they go.
        self.asking_by_themselves = False

    def check_reading(self, number: int, *, asks_by_itself: bool) -> None:
        """A chunk is about to be processed.

        :param asks_by_itself: what the session is answered may lead to further commands, which one
            more chunk may join.
        :raises Violation: when something has to be waited for before.
        """
        if not self._server.hub.has_more(number):
            self._joined.pop(number, None)
        elif asks_by_itself and number not in self._joined:
            self._joined[number] = None
        else:
            raise Violation("bound", f"session {number} is read from before its last chunk is done")

    def resumed(self, number: int) -> None:
        """It is to be read from again: what it had asked for by itself is done (seed 202861)."""
        if not self._server.hub.has_more(number):
            self._joined.pop(number, None)

    def check_step(self, number: int, step: int) -> None:
        """A chunk was processed, and its reader was told what to do.

        :raises Violation: when it is to read on, and its peer does not read.
        """
        out = self._server.turn.outbound(number)
        if step == READ and out is not None and out.blocked and out.bytes > out.marks.pause_bytes:
            raise Violation("bound", f"session {number} is read from though it does not read")

    def check_end(self, session: Guest, reason: str) -> None:
        """A connection is closed.

        :raises Violation: when it is too early for that, or something was left undone.
        """
        server = self._server
        dropped = server.hub.commands_dropped
        # Others that end in the same turn have dropped their own (seed 11644).
        was, self._dropped = self._dropped, dropped
        if session.end.closed or session.end.link.gone or not server.up:
            return  # it broke
        now = server.world.now
        marks = server.turn.marks
        if reason.startswith("slow reader: no progress"):
            if now - session.progress_at < marks.stall_timeout_s - _SLACK_S:
                raise Violation("network", f"session {session.number} is cut, and it reads")
        elif reason.startswith("slow reader") or reason in ("the server stopped", INTERNAL_ERROR):
            return
        elif session.waited and now - session.flushing_since < marks.flush_timeout_s - _SLACK_S:
            text = f"session {session.number} is closed, {session.waited} bytes before its end"
            raise Violation("network", f"{text}: {reason}")
        if dropped > was and reason in _POLITE and not self.asking_by_themselves:
            text = f"{dropped - was} commands of session {session.number} were not carried out"
            raise Violation("network", f"{text}: {reason}")

    def forgive_drops(self) -> None:
        """Everybody was closed from this side: what waits of their last words is dropped."""
        self._dropped = self._server.hub.commands_dropped

    def progressed(self, number: int) -> None:
        """A peer has read: what waits for it now may have come at one go (seed 5119)."""
        self._waited.pop(number, None)

    def check(self) -> None:
        """Look at everything, after a turn.

        :raises Violation: when something is late, forgotten or unbounded.
        """
        server = self._server
        self._dropped = server.hub.commands_dropped
        hub = server.hub
        outbound = server.turn.outbound
        late = server.now - self._slack_s
        for number, session in server.guests.items():
            out = outbound(number)
            # Of most there is only a deadline to be examined.
            if (
                out is not None
                and out.state == OPEN
                and not out.bytes
                and not out.blocked
                and session.step != WAIT
                and number not in self._waited
            ):
                deadline = hub.session_deadline(number)
                if deadline is None or deadline >= late:
                    continue
            self._check_session(number)
        saving = server.turn.saving
        if saving is None:
            return
        if saving.state == IDLE and (saving._asked or not saving._journal.is_empty):
            raise Violation("promptness", "the storage idles, and there is something to do")
        lingers = saving.state == LINGERING
        if lingers and (saving._asked or (saving._journal.is_urgent and not saving._linger_s())):
            raise Violation("promptness", "the storage lingers, and somebody waits")
        if saving.state in (LINGERING, PAUSED) and saving.due() + self._slack_s < server.now:
            raise Violation("promptness", "the storage rests for too long")

    def _check_session(self, number: int) -> None:
        server = self._server
        session = server.guests[number]
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
        still_s = server.world.now - session.progress_at
        if out.bytes and still_s > marks.stall_timeout_s + self._slack_s:
            raise Violation("promptness", f"session {number} stalls, and is not cut")
        if out.state == LOST and out.due() + self._slack_s < server.now:
            raise Violation("promptness", f"session {number} is lost, and not ended")
        more = server.hub.has_more(number) or server.goes_on
        if out.throttled:
            server.paces.check_held(number, out)
            return
        waits_for_nothing = not (more or out.blocked) and server.hub.reads(number)
        if session.end.link.host.startswith(WEB_SOCKET):
            waits_for_nothing = False  # it is over in two seconds if it closes (seed 1676)
        if session.step == WAIT and waits_for_nothing and out.state != FLUSHING:
            raise Violation("promptness", f"session {number} is not read from, for no reason")
        deadline = server.hub.session_deadline(number)
        if deadline is None or out.bytes or server.hub.is_waiting(number):
            return
        # One that was being sent to is examined again after a while.
        free_at = session.busy_at - server.booted_at + _BUSY_RECHECK_S
        if max(deadline, free_at, out.excused_until) + self._slack_s < server.now:
            raise Violation("promptness", f"session {number}: its deadline is not kept")
