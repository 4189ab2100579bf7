"""Queries about the sessions of a hub, and notifications of written bytes."""

from __future__ import annotations

from collections import deque

from tmqp_server.access.gate import Question
from tmqp_server.engine.books import CONNECTION_BYTES
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, ListChannels, ListOffsets, SurveyCommand
from tmqp_server.hub.outlets import Outlets

__all__ = ["Looks"]


class Looks:
    """Queries about the sessions of a hub; ``Hub`` completes it.

    :param broker: the engine.
    :param outlets: the sessions.
    """

    def __init__(self, broker: Broker, outlets: Outlets) -> None:
        self.broker = broker
        self._outlets = outlets
        self._sessions = outlets.sessions
        self._open: dict[int, Question] = {}
        self._rest: dict[int, deque[Command]] = {}
        self.woken = outlets.woken
        self.awaited = outlets.awaited

    def names_shown(self, command: Command) -> list[str] | None:
        """Return the channels that the answer to a command would show (F52), of which only the
        visible ones are collected and counted; None if the command is not such a list."""
        if isinstance(command, (ListChannels, ListOffsets)):
            return self.broker.channel_names(command.filter)
        if isinstance(command, SurveyCommand):
            return self.broker.surveying.prepare(command)
        return None

    def reads(self, number: int) -> bool:
        """Return whether the session wants to read from its peer."""
        session = self._sessions.get(number)
        stops = session is not None and (not session.reads or session.wants_tls)
        return not stops and not self.broker.holds(number)

    def left(self, number: int, waiting: int) -> None:
        """Note that the kernel has all output of one of ``awaited``, except the last *waiting*
        bytes."""
        if number in self.awaited:
            self._sessions[number].left(waiting)

    def is_operators(self, number: int) -> bool:
        """Whether a session is of a door for operators, which stays open to the end."""
        door = self._outlets.doors.get(number)
        return door is not None and door.for_operators

    def pushed(self, number: int) -> int:
        """How many messages a session has pushed."""
        return self.broker.pushed(number)

    def excuse(self, number: int, now: float) -> None:
        """Excuse a session's silence until now: the server has not read from its peer."""
        session = self._sessions.get(number)
        if session is not None:
            session.excuse_silence(now)

    def in_flight(self) -> int:
        """How many deliveries clients have not acknowledged."""
        return self.broker.in_flight()

    def close_reason(self, number: int) -> str:
        """Why the session's protocol is closed; empty if it is open."""
        session = self._sessions.get(number)
        return "" if session is None else session.close_reason

    def violation(self, number: int) -> str:
        """The rule of the protocol that the session's peer has broken; empty if none."""
        session = self._sessions.get(number)
        return "" if session is None else session.violation

    def wake(self, number: int) -> None:
        """Check the deadline of a session again, because another session has made it nearer."""
        self.woken[number] = None

    def is_full(self) -> bool:
        """Whether a session has a portion to send, or a portion of work was done."""
        return self._outlets.full

    def is_waiting(self, number: int) -> bool:
        """Whether a question about the session is open."""
        # To look for a number makes an object of it: not for each chunk if nothing can be found.
        return len(self._open) > 0 and number in self._open

    def must_wait(self, number: int) -> bool:
        """Whether the session's commands must wait: a question is open, or a push is held."""
        return self.is_waiting(number) or self.broker.holds(number)

    def has_more(self, number: int) -> bool:
        """Whether commands of the session wait, even if it is closed."""
        return self.is_waiting(number) or (len(self._rest) > 0 and number in self._rest)

    def session_deadline(self, number: int) -> float | None:
        """Return when to call ``on_session_deadline``; None for never, or if the session has
        ended."""
        session = self._sessions.get(number)
        return None if session is None else session.next_deadline()

    def broker_deadline(self) -> float | None:
        """Return when to call ``on_broker_deadline``; None for never."""
        return self.broker.next_deadline()

    def has_room(self, more: int = 0) -> bool:
        """Whether there is memory for another connection, and for this many bytes in addition."""
        return self.broker.has_room_for_client(CONNECTION_BYTES + more)
