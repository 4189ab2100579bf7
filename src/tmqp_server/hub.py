"""Owns the meeting of doors and broker: carries commands in, effects out, and nothing else.

Theory of operation.  The hub knows the broker and, by number, the sessions of all doors.  Bytes
that came in become commands (the session's work), each command is one step of the broker, and each
effect goes to the session it names; what a session answers to an effect (the messages that waited
for its acceptance) is worked off in the same way.  Sessions with something to send are remembered
in the order they were touched, so that the caller writes to each of them once a turn.

It is pure: the driver around it brings bytes and the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import final

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Block, Command, Disconnect, Synced, Unblock
from tmqp_server.engine.effects import (
    Accept,
    Append,
    CloseSession,
    Confirm,
    Deliver,
    Effect,
    Forward,
    Inform,
    Notify,
    Refuse,
    Reply,
)

__all__ = ["Hub"]


@final
class Hub:
    """Broker and door sessions, joined.

    :param broker: the engine; the hub is its only caller.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._sessions: dict[int, DoorSession] = {}
        self._doors: dict[int, Door] = {}
        self._touched: dict[int, None] = {}
        self.notified: int = 0

    # -- sessions -------------------------------------------------------------------------------

    def open(self, number: int, door: Door, now: float) -> None:
        """A connection with this number, never used before, speaks the door's protocol."""
        assert number not in self._sessions, "session numbers are not used twice"
        self._sessions[number] = door.open(number, now)
        self._doors[number] = door

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes came in."""
        session = self._sessions.get(number)
        if session is not None:
            self._run(session.receive(data, now), now)
            self._touched[number] = None

    def receive_eof(self, number: int, now: float) -> None:
        """The peer will send no more."""
        session = self._sessions.get(number)
        if session is not None:
            self._run(session.receive_eof(now), now)
            self._touched[number] = None

    def close(self, number: int, reason: str, now: float) -> None:
        """Close a session from this side, politely."""
        session = self._sessions.get(number)
        if session is not None:
            self._run(session.close(reason, now), now)
            self._touched[number] = None

    def forget(self, number: int, now: float) -> None:
        """The transport is gone, for whatever reason; whatever the session held is given back."""
        session = self._sessions.pop(number, None)
        if session is not None:
            del self._doors[number]
            self._touched.pop(number, None)
            self._run((Disconnect(number),), now)

    def block(self, number: int, now: float) -> None:
        """The session's peer does not read: hold its deliveries back."""
        if number in self._sessions:
            self._run((Block(number),), now)

    def unblock(self, number: int, now: float) -> None:
        """The session's peer reads again."""
        if number in self._sessions:
            self._run((Unblock(number),), now)

    def close_reason(self, number: int) -> str:
        """Why the session's protocol is closed; empty while it is not."""
        session = self._sessions.get(number)
        return "" if session is None else session.close_reason

    # -- what is to be sent ---------------------------------------------------------------------

    def take_touched(self) -> Sequence[int]:
        """The sessions that may have something to send, in the order they were touched."""
        touched = list(self._touched)
        self._touched.clear()
        return touched

    def data_to_send(self, number: int) -> bytes:
        """Everything a session has queued."""
        session = self._sessions.get(number)
        return b"" if session is None else session.data_to_send()

    # -- time -----------------------------------------------------------------------------------

    def session_deadline(self, number: int) -> float | None:
        """When a session wants :meth:`on_session_deadline`; None for never or when it is gone."""
        session = self._sessions.get(number)
        return None if session is None else session.next_deadline()

    def on_session_deadline(self, number: int, now: float) -> None:
        """A session's deadline may have come."""
        session = self._sessions.get(number)
        if session is not None:
            self._run(session.on_deadline(now), now)
            self._touched[number] = None

    def broker_deadline(self) -> float | None:
        """When the broker wants :meth:`on_broker_deadline`; None for never."""
        return self.broker.next_deadline()

    def on_broker_deadline(self, now: float) -> None:
        """The broker's deadline may have come."""
        self._work(deque(), self.broker.on_deadline(now), now)

    # -- the machine ----------------------------------------------------------------------------

    def _run(self, commands: Sequence[Command], now: float) -> None:
        step = self.broker.step
        waiting: deque[Command] | None = None
        for command in commands:
            effects = step(command, now)
            if effects:
                waiting = self._work(waiting or deque(), effects, now)

    def _work(
        self, waiting: deque[Command], effects: Iterable[Effect], now: float
    ) -> deque[Command]:
        """Carry effects out, and whatever follows from them, until nothing does."""
        while True:
            for effect in effects:
                if isinstance(effect, Deliver):
                    self._deliver(effect)
                elif isinstance(effect, (Forward, Inform)):
                    self._spread(effect)
                elif isinstance(effect, Append):
                    # Nothing is stored, so nothing is ever confirmed as saved (nor erased).
                    waiting.append(Synced(effect.ticket, False))
                elif isinstance(effect, Notify):
                    self.notified += 1
                elif isinstance(effect, (Reply, Confirm, Accept, Refuse, CloseSession)):
                    session = self._sessions.get(effect.session)
                    if session is not None:
                        waiting.extend(session.apply(effect, now))
                        self._touched[effect.session] = None
            if not waiting:
                return waiting
            effects = self.broker.step(waiting.popleft(), now)

    def _deliver(self, effect: Deliver) -> None:
        """Encode once a door, share the bytes among its sessions."""
        sessions = self._sessions
        touched = self._touched
        encoded: dict[str, bytes] = {}
        for number in effect.sessions:
            session = sessions.get(number)
            if session is None:
                continue
            door = self._doors[number]
            data = encoded.get(door.name)
            if data is None:
                data = encoded[door.name] = door.encode_delivery(effect)
            session.deliver(data)
            touched[number] = None

    def _spread(self, effect: Forward | Inform) -> None:
        """The same for what is no delivery: what clients say to each other, and events."""
        encoded: dict[str, bytes] = {}
        for number in effect.sessions:
            session = self._sessions.get(number)
            if session is None:
                continue
            door = self._doors[number]
            data = encoded.get(door.name)
            if data is None:
                if isinstance(effect, Forward):
                    data = door.encode_forward(effect)
                else:
                    data = door.encode_event(effect)
                encoded[door.name] = data
            session.deliver(data)
            self._touched[number] = None
