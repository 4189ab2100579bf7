"""One connection of an nsqd to a lookupd, as a pure session (N136 to N142).

When the client has identified itself, the broker is asked to accept it.  Registrations are kept in
the door's table, not in the broker.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

from tmqp.hello import ConnectionInformation
from tmqp_server.doors.nsq_lookup.table import LookupTable, TableFullError
from tmqp_server.doors.port import DoorSession
from tmqp_server.engine.commands import Command, Connect, Disconnect
from tmqp_server.engine.effects import Accept, CloseSession, Effect, Refuse
from tmqp_wires.nsq.events import Event, Violation
from tmqp_wires.nsq.lookup import (
    OK,
    Announce,
    LookupDecoder,
    Ping,
    Register,
    Unregister,
    answer,
)

__all__ = ["DOOR_NAME", "LookupSession"]

#: The name of the door, and the type of its clients.
DOOR_NAME: Final = "nsqlookupd"
#: The most commands that may wait for the broker's decision about the client; more end the
#: connection.
_MAX_WAITING: Final = 1_024

_STRANGER: Final = 0
_WAITING: Final = 1
_CONNECTED: Final = 2


@final
class LookupSession(DoorSession):
    """One connection.

    :param table: all registrations.
    :param about: makes the answer to IDENTIFY, with facts about this lookupd.
    :param hello_timeout_s: seconds within which a client must identify itself.
    :param idle_timeout_s: seconds of silence after which a client is disconnected.
    """

    def __init__(
        self,
        number: int,
        table: LookupTable,
        about: Callable[[], bytes],
        new_id: Callable[[], str],
        now: float,
        hello_timeout_s: float,
        idle_timeout_s: float,
    ) -> None:
        super().__init__()
        self._number = number
        self._table = table
        self._about_me = about
        self._new_id = new_id
        self._decoder = LookupDecoder()
        self._standing = _STRANGER
        self._about: Announce | None = None
        #: The client's commands after IDENTIFY, until the broker has accepted it.
        self._waiting: deque[Event] = deque()
        self._out: list[bytes] = []
        self._hello_due = now + hello_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._idle_due = math.inf

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into registrations."""
        commands: list[Command] = []
        if self.closed:
            return commands
        for event in self._decoder.feed(data):
            if self._standing == _WAITING:
                self._waiting.append(event)
            else:
                self._carry_out(event, now, commands)
            if self._over:
                return commands
        if len(self._waiting) > _MAX_WAITING:
            commands += self._end("too many commands before the client was accepted")
        return commands

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more."""
        return [] if self.closed else self._end("the peer closed the connection")

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side; the protocol has no message for it."""
        return [] if self.closed else self._end(reason)

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` wants to be called."""
        due = min(self._hello_due, self._idle_due)
        return None if self.closed or due == math.inf else due

    def on_deadline(self, now: float) -> Sequence[Command]:
        """End the connection of a silent client."""
        if self.closed or now < min(self._hello_due, self._idle_due):
            return []
        said = "that it is alive" if self._hello_due == math.inf else "who it is"
        return self._end(f"the client did not say {said}")

    # -- commands -------------------------------------------------------------------------------

    def _carry_out(self, event: Event, now: float, commands: list[Command]) -> None:
        if self._idle_due < math.inf:
            self._idle_due = now + self._idle_timeout_s
        if isinstance(event, Violation):
            if event.answer:
                self._send(event.answer)
            commands += self._end(event.text.decode("utf-8", "replace"))
        elif isinstance(event, Ping):
            self._table.ping(self._number, now)
            self._send(OK)
        elif isinstance(event, Announce):
            self._hello_due = math.inf
            self._standing = _WAITING
            self._about = event
            commands.append(self._connect(event))
        elif isinstance(event, Register):
            try:
                self._table.register(self._number, event.topic, event.channel)
            except TableFullError as error:
                self._refuse(b"E_INVALID REGISTER " + str(error).encode(), commands)
            else:
                self._send(OK)
        else:
            assert isinstance(event, Unregister), f"{event!r} is not a command"
            self._table.unregister(self._number, event.topic, event.channel)
            self._send(OK)

    def _connect(self, about: Announce) -> Connect:
        """Ask the broker to accept the client."""
        name = f"{about.broadcast_address}:{about.tcp_port}"
        kept = {"Hostname": about.hostname, "Version": about.version}
        who = ConnectionInformation("", name, DOOR_NAME, "", kept)
        return Connect(
            self._number, None, self._new_id(), name, DOOR_NAME, DOOR_NAME, who, kept=kept
        )

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out the broker's decision about the client."""
        commands: list[Command] = []
        if self.closed:
            return commands
        if isinstance(effect, CloseSession):
            self._standing = _STRANGER
            return self._end(effect.reason)
        if isinstance(effect, Refuse):
            self._standing = _STRANGER
            self._refuse(b"E_UNAUTHORIZED IDENTIFY the client is not accepted", commands)
        elif isinstance(effect, Accept):
            self._standing = _CONNECTED
            self._idle_due = now + self._idle_timeout_s
            self.hurried = True
            assert self._about is not None, "it has told who it is"
            self._table.identify(self._number, self.peer, self._about, now)
            self._send(answer(self._about_me()))
            while self._waiting and not self._over:
                self._carry_out(self._waiting.popleft(), now, commands)
        return commands

    @property
    def _over(self) -> bool:
        return self.closed

    def _refuse(self, text: bytes, commands: list[Command]) -> None:
        self._send(answer(text))
        commands += self._end(text.decode())

    def _end(self, reason: str) -> list[Command]:
        self.closed = True
        self.close_reason = self.close_reason or reason
        self._waiting.clear()
        self._table.leave(self._number)
        if self._standing == _STRANGER:
            return []
        self._standing = _STRANGER
        return [Disconnect(self._number)]

    # -- bytes out ------------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        self._out.append(data)
        self.outbound_bytes += len(data)

    def deliver(self, data: bytes) -> None:
        """Nothing: the protocol has no messages from other clients."""

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        data = b"".join(self._out)
        self._out.clear()
        self.outbound_bytes = 0
        return data

    def held_bytes(self) -> int:
        """Bytes that were received and not carried out yet."""
        return self._decoder.held_bytes + 128 * len(self._waiting)

    def forget_hello(self) -> None:
        """Drop what was received from a client that will be refused."""
        self._waiting.clear()
