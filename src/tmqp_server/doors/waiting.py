"""Sessions that ask the broker to accept the client with its first request; further requests wait
meanwhile.

Protocols without a login begin in this way: the first request of a client, whatever it is, counts
as its introduction, and is carried out once the broker has decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from tmqp._compat import mypyc_attr
from tmqp_server.doors.port import SYNTAX, DoorSession, IdSource
from tmqp_server.engine.commands import Command, Connect, Disconnect
from tmqp_server.engine.effects import Accept, CloseSession, Effect, Refuse

__all__ = ["NOTHING", "STRANGER", "WaitingSession"]

NOTHING: Final[Sequence[Command]] = ()
#: The bytes that a waiting event takes besides its texts.
_EVENT_BYTES: Final = 100
_SHORT_ID: Final = 12
#: The value of ``_standing`` for a client that the broker does not know.
STRANGER: Final = 0
_WAITING: Final = 1
_CONNECTED: Final = 2

_Event = TypeVar("_Event")


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingSession(DoorSession, Generic[_Event]):
    """One connection of a protocol without a login.

    :param door: the name of its door, which is the prefix of its clients' ids.
    :param new_id: makes the unique part of clients' ids.
    :param max_early_bytes: how much a client may send before the broker has decided about it.
    """

    def __init__(self, number: int, door: str, new_id: IdSource, max_early_bytes: int) -> None:
        super().__init__()
        self._number = number
        self._door = door
        self._new_client_id = new_id
        self._max_early_bytes = max_early_bytes
        self._standing = STRANGER
        self._early: list[_Event] = []
        self._early_bytes = 0
        self._client_id = ""

    # -- what a protocol says ---------------------------------------------------------------------

    def commands_of(self, events: list[_Event], now: float) -> Sequence[Command]:
        """The commands for events of an accepted client."""
        raise NotImplementedError

    def text_bytes_of(self, event: _Event) -> int:
        """The size of an event's texts in bytes."""
        raise NotImplementedError

    def fault_of(self, event: _Event) -> str:
        """Why the connection ends, if this first event is a fault; empty if it continues."""
        return ""

    def begin(self, event: _Event) -> None:
        """Note what the first event says about the client."""

    def forget_input(self) -> None:
        """Drop incomplete input."""
        raise NotImplementedError

    def last_commands(self) -> list[Command]:
        """The last commands of an accepted client, before it disconnects."""
        return []

    # -- the beginning and the end ----------------------------------------------------------------

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more; incomplete input is dropped."""
        return self.end("the peer closed the connection")

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side; such protocols have no message for it."""
        return self.end(reason)

    def end(self, reason: str) -> Sequence[Command]:
        """End the session."""
        if self.closed:
            return NOTHING
        self.closed = True
        self.close_reason = self.close_reason or reason
        self.forget_input()
        was_known = self._standing == _CONNECTED
        self._standing = STRANGER
        if not was_known:
            return NOTHING
        return [*self.last_commands(), Disconnect(self._number)]

    def take(self, events: list[_Event], now: float) -> Sequence[Command]:
        """Carry out events, or keep them until the broker has decided about the client."""
        if not events:
            return NOTHING
        if self._standing == _CONNECTED:
            return self.commands_of(events, now)
        fault = self.fault_of(events[0])
        if fault:
            self.violation = SYNTAX
            return self.end(fault)
        self._early += events
        for event in events:
            self._early_bytes += _EVENT_BYTES + self.text_bytes_of(event)
        if self._early_bytes > self._max_early_bytes:
            return self.end("too much was sent before the server had decided about the client")
        if self._standing == _WAITING:
            return NOTHING
        self._standing = _WAITING
        self.begin(events[0])
        return [self.introduction()]

    def own_id(self) -> str:
        """An id for a client that has none."""
        short = self._new_client_id()[:_SHORT_ID]
        return f"{self._door}:{self.peer or 'client'}/{short}"

    def introduction(self) -> Connect:
        """Ask the broker to accept the client."""
        self._client_id = self.own_id()
        return Connect(self._number, None, self._client_id, None, None, self._door)

    def decided(self, effect: Effect, now: float) -> Sequence[Command] | None:
        """Carry out the broker's decision about the client; None for any other effect."""
        if isinstance(effect, Accept):
            self._standing = _CONNECTED
            self._client_id = effect.client_id
            early = self._early
            self._early = []
            self._early_bytes = 0
            return self.commands_of(early, now)
        if isinstance(effect, Refuse):
            self._standing = STRANGER
            return self.end(f"refused with {effect.code}")
        if isinstance(effect, CloseSession):
            self._standing = STRANGER
            return self.end(effect.reason)
        return None

    def held_bytes(self) -> int:
        """Bytes of input that waits for the decision about the client."""
        return self._early_bytes

    def forget_hello(self) -> None:
        """Drop what was received from a client that will be refused."""
        self.forget_input()
        self._early = []
        self._early_bytes = 0
