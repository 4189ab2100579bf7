"""What the small servers of the packs have in common: the machine around their sessions."""

from __future__ import annotations

from itertools import count
from typing import Generic, TypeVar

from tmqp.testing.conformance import Case

__all__ = ["SmallMachine", "SmallSession"]


class SmallSession:
    """One connection: what there is to send, and whether the server has closed it."""

    def __init__(self) -> None:
        self.out = b""
        self.closed = False


_Session = TypeVar("_Session", bound=SmallSession)


class SmallMachine(Generic[_Session]):
    """A server without times; :class:`tmqp_conformance.packs.memory.PackMachine`.

    ``crashed``: it takes no bytes and says nothing any more.
    """

    def __init__(self) -> None:
        self.place = ""
        self.crashed = False
        self.sessions: dict[int, _Session] = {}
        self._numbers = count(1)

    def made(self) -> _Session:
        """A new session."""
        raise NotImplementedError

    def heard(self, session: _Session, data: bytes) -> None:
        """Bytes arrive."""
        raise NotImplementedError

    def left(self, session: _Session) -> None:
        """A connection is over."""
        raise NotImplementedError

    def open(self, case: Case, now: float) -> int | None:
        """A new connection; none from a server that has crashed."""
        if self.crashed:
            return None
        number = next(self._numbers)
        self.sessions[number] = self.made()
        return number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        session = self.sessions[number]
        if not session.closed:
            self.heard(session, data)

    def take(self, number: int) -> bytes:
        """What there is to send."""
        session = self.sessions[number]
        data, session.out = session.out, b""
        return data

    def is_closed(self, number: int) -> bool:
        """Whether the server has closed."""
        return self.crashed or self.sessions[number].closed

    def end(self, number: int, now: float) -> None:
        """The peer sends no more."""
        self._leave(number)

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self._leave(number)

    def _leave(self, number: int) -> None:
        session = self.sessions[number]
        if not session.closed:
            session.closed = True
            self.left(session)

    def next_deadline(self) -> float | None:
        """Never."""
        return None

    def on_deadline(self, now: float) -> None:
        """Nothing is due."""
