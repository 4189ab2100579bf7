"""This server's connection to one master: when to connect, what to send, and what arrives.

Theory of operation.  A link is always in one :class:`LinkState`::

    WAITING --dialling--> CONNECTING --opened--> HANDSHAKING --accepted--> UP
       ^                      |failed                 |                     |
       '----------------------+-----------------------+---------------------'  lost, refused, silent

and ``close`` leads from each state to CLOSED, for good.  After every failure, it waits twice as
long as before, up to a limit, minus a random part, so that the slaves of a restarted master do not
all connect at once.  A connection that has lasted for a while resets this.

Messages are offered in every state except CLOSED, and wait in the :class:`Outbox`.  The caller
connects, reads, writes what :meth:`MasterLink.take` returns, reports with
:meth:`MasterLink.note_written` how much was written, and calls :meth:`MasterLink.on_deadline`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from tmqp.backoff import Backoff
from tmqp.connection import Connection
from tmqp.constants import OP_DECISION_OVER_NODE, ResultCode
from tmqp.events import (
    ConnectionClosed,
    Event,
    HandshakeAccepted,
    HandshakeRefused,
    MessageReceived,
    ServerMessageReceived,
)
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp.state import Role
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.doors.native.nodes import decision_of
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.engine.commands import Command, ReportMaster

__all__ = ["LinkState", "MasterLink"]

#: A connection that lasts for this many seconds resets the pauses.
_STEADY_S: Final = 5.0

_REFUSALS: Final = {
    int(ResultCode.UNAUTHORIZED): "it does not take this token",
    int(ResultCode.CONFLICT): "it has the name of this server",
    int(ResultCode.LIMIT_EXCEEDED): "it has too many connections",
    int(ResultCode.BUSY): "another client has this server's name",
}


class LinkState(IntEnum):
    """The state of a link."""

    WAITING = 0
    CONNECTING = 1
    HANDSHAKING = 2
    UP = 3
    CLOSED = 4


class MasterLink:
    """The connection to one master.

    :param node_id: the master's id: its address.
    :param host: the master's host.
    :param information: how this server introduces itself.
    :param limits: the limits and timeouts of the connection.
    :param chance: returns a random number from 0 up to 1.
    :param heeds_decisions: whether to carry out decisions of the master.
    :param now: the time of the first attempt.

    Attributes to read: ``state``, ``outbox``, ``failures`` (in a row), ``connections`` (accepted so
    far), ``problem`` (why the last connection failed or ended; empty while connected), ``ignored``
    (messages of the master that have no meaning here).
    """

    def __init__(
        self,
        node_id: str,
        host: str,
        information: ConnectionInformation,
        limits: Limits,
        backoff: Backoff,
        outbox: Outbox,
        chance: Callable[[], float],
        heeds_decisions: bool,
        now: float,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.outbox = outbox
        self.state = LinkState.WAITING
        self.failures = 0
        self.connections = 0
        self.ignored = 0
        self.problem = ""
        self._information = information
        self._limits = limits
        self._backoff = backoff
        self._chance = chance
        self._heeds_decisions = heeds_decisions
        self._try_at = now
        self._up_since = 0.0
        self._connection: Connection | None = None
        #: Bytes of the connection itself that precede the bytes from the outbox.
        self._control = 0

    # -- trying ---------------------------------------------------------------------------------

    def dialling(self, now: float) -> None:
        """Note that the caller begins to connect."""
        assert self.state == LinkState.WAITING, "one connection at a time"
        self.state = LinkState.CONNECTING

    def opened(self, now: float) -> None:
        """Introduce this server on a new connection (F133)."""
        if self.state == LinkState.CLOSED:
            return
        assert self.state == LinkState.CONNECTING, "connections are opened one by one"
        self.state = LinkState.HANDSHAKING
        connection = Connection(Role.CLIENT, self._limits, now=now)
        connection.initiate(self._information)
        self._connection = connection

    def failed(self, problem: str, now: float) -> None:
        """Handle that connecting has failed, for this reason."""
        if self.state == LinkState.CONNECTING:
            self._wait(problem, now)

    def _wait(self, problem: str, now: float) -> None:
        self.state = LinkState.WAITING
        self.problem = problem
        self.failures += 1
        self._try_at = now + self._backoff.delay_s(self.failures, 1.0 - self._chance())

    # -- talking --------------------------------------------------------------------------------

    @property
    def has_connection(self) -> bool:
        """Whether it is connected, accepted or not yet."""
        return self._connection is not None

    def receive(self, data: bytes, now: float) -> list[Command]:
        """Process received bytes; return the resulting commands."""
        if self._connection is None:
            return []
        return self._work(self._connection.receive(data, now), now)

    def lost(self, problem: str, now: float) -> list[Command]:
        """Handle the end of the connection, with its reason; empty if the master ended it."""
        connection = self._connection
        if connection is None:
            return []
        if not problem:
            return self._work(connection.receive_eof(now), now)
        return self._end(problem, now)

    def on_deadline(self, now: float) -> list[Command]:
        """Ping the master, or give the connection up."""
        if self._connection is None:
            return []
        return self._work(self._connection.on_deadline(now), now)

    def next_deadline(self) -> float | None:
        """When to call :meth:`on_deadline`, or in the state WAITING to connect; None for never."""
        if self.state == LinkState.WAITING:
            return self._try_at
        return None if self._connection is None else self._connection.next_deadline()

    def close(self, now: float) -> list[Command]:
        """Say goodbye, if connected, and never connect again, because this server stops."""
        was_up = self.state == LinkState.UP
        self.state = LinkState.CLOSED
        if self._connection is not None:
            self._connection.close()
        return [self._report(False)] if was_up else []

    def _work(self, events: list[Event], now: float) -> list[Command]:
        commands: list[Command] = []
        for event in events:
            if isinstance(event, HandshakeAccepted):
                self.state = LinkState.UP
                self.problem = ""
                self.connections += 1
                self._up_since = now
                commands.append(self._report(True))
            elif isinstance(event, HandshakeRefused):
                why = _REFUSALS.get(event.code, f"code {event.code}")
                commands += self._end(f"the master refuses this server: {why}", now)
            elif isinstance(event, ServerMessageReceived):
                self._take(event, commands)
            elif isinstance(event, ConnectionClosed):
                connection = self._connection
                error = None if connection is None else connection.error
                problem = event.reason if error is None else f"{event.reason}: {error}"
                commands += self._end(f"the connection ended: {problem}", now)
            elif isinstance(event, MessageReceived):
                self.ignored += 1
        return commands

    def _take(self, event: ServerMessageReceived, commands: list[Command]) -> None:
        frame = event.frame
        if self._heeds_decisions and frame.content_type == OP_DECISION_OVER_NODE:
            try:
                commands.append(decision_of(frame))
            except BadRequestError:
                self.ignored += 1  # one decision less is no reason to end the connection
            return
        self.ignored += 1

    def _end(self, problem: str, now: float) -> list[Command]:
        """End the connection; nothing happens if it has already ended."""
        if self._connection is None:
            return []
        was_up = self.state == LinkState.UP
        self._connection = None
        self._control = 0
        self.outbox.give_back()
        if self.state == LinkState.CLOSED:
            return []
        if was_up and now - self._up_since >= _STEADY_S:
            self.failures = 0
        self._wait(problem, now)
        return [self._report(False)] if was_up else []

    def _report(self, connected: bool) -> Command:
        return ReportMaster(self.node_id, self.host, connected)

    # -- writing --------------------------------------------------------------------------------

    def offer(self, message: bytes) -> None:
        """Send a message to the master as soon as it is connected."""
        if self.state != LinkState.CLOSED:
            self.outbox.put(message)

    def take(self, about_bytes: int) -> bytes:
        """Return the bytes to write now; write all of them before the next call."""
        connection = self._connection
        if connection is None:
            return b""
        control = connection.data_to_send()
        self._control = len(control)
        if self.state == LinkState.UP:
            return control + self.outbox.take(about_bytes)
        return control

    def note_written(self, count: int) -> None:
        """Note how many of the taken bytes have been written."""
        if self._connection is None:
            return
        control = min(count, self._control)
        self._control -= control
        self.outbox.note_written(count - control)
