"""The order in which the ranges that a session requests are read: one at a time.

Theory of operation.  A client may request several ranges together, and each answer is large.  So
the next range is read only when the previous answer has been passed on and the client reads it: a
blocked session waits, and the memory for its answers stays below two answers, however many it
requests.  This is checked in the next ``on_deadline``, because only then the world has tried to
send.
"""

from __future__ import annotations

from collections import deque

from tmqp_server.engine.commands import ReadRange
from tmqp_server.engine.model.sessions import Session

__all__ = ["Lines", "SessionReads"]


class SessionReads:
    """The ranges that one session waits for; ``busy`` while the storage reads for it."""

    __slots__ = ("busy", "session", "waiting")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.waiting: deque[ReadRange] = deque()
        self.busy = False


class Lines:
    """The lines of all sessions that have one."""

    __slots__ = ("_lines", "_ready")

    def __init__(self) -> None:
        self._lines: dict[int, SessionReads] = {}
        self._ready: dict[int, SessionReads] = {}

    def length(self, session: Session) -> int:
        """How many ranges a session waits for, not counting the one that is being read."""
        line = self._lines.get(session.number)
        return 0 if line is None else len(line.waiting)

    def must_wait(self, session: Session) -> bool:
        """Whether the session's next range cannot be read now."""
        line = self._lines.get(session.number)
        return session.blocked or (line is not None and (line.busy or bool(line.waiting)))

    def wait(self, session: Session, command: ReadRange) -> None:
        """Let a range be read later."""
        self._line(session).waiting.append(command)

    def begin(self, session: Session) -> None:
        """Record that the storage reads for a session."""
        self._line(session).busy = True

    def end(self, session: Session) -> None:
        """Record that the storage has answered."""
        line = self._lines.get(session.number)
        if line is not None:
            line.busy = False
            if line.waiting:
                self._ready[session.number] = line
            else:
                del self._lines[session.number]

    def unblock(self, session: Session) -> None:
        """Record that a session reads again."""
        line = self._lines.get(session.number)
        if line is not None and not line.busy:
            self._ready[session.number] = line

    def forget(self, session: Session) -> None:
        """Drop the line of a session that has ended."""
        self._lines.pop(session.number, None)
        self._ready.pop(session.number, None)

    def has_work(self) -> bool:
        """Whether any session may continue."""
        return bool(self._ready)

    def take_ready(self) -> list[SessionReads]:
        """Remove and return the lines that may continue, in order; those of blocked sessions wait
        until they read again."""
        ready = list(self._ready.values())
        self._ready = {}
        return [line for line in ready if not line.busy and not line.session.blocked]

    def take(self, line: SessionReads) -> ReadRange | None:
        """Remove and return the first range of a line; if there is none, return None and end the
        line."""
        if line.waiting:
            return line.waiting.popleft()
        self._lines.pop(line.session.number, None)
        return None

    def _line(self, session: Session) -> SessionReads:
        line = self._lines.get(session.number)
        if line is None:
            line = SessionReads(session)
            self._lines[session.number] = line
        return line
