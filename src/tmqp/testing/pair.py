"""A client and a server connection with a wire between them, and one clock.

There is no I/O, and only the pair's own time passes, so a scenario of minutes runs in microseconds,
and always in the same way::

    pair = ConnectionPair()
    pair.handshake()
    pair.client.send(Frame.build(MessageType.QUEUE_MESSAGE, "orders", 1, b"tea"))
    pair.exchange()
    assert isinstance(pair.server_events[-1], QueueMessageReceived)
    pair.advance(20.0)  # both ask each other whether they are alive
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp.connection import Connection
from tmqp.events import ConnectionClosed, Event, HandshakeReceived
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp.state import Role, State

__all__ = ["ConnectionPair", "Decide", "accept_client"]

#: What a server does about a client that introduced itself: ``accept`` or ``refuse`` the
#: connection, and return the events of that.
Decide = Callable[[Connection, HandshakeReceived], list[Event]]

#: More turns than this mean that the two would never stop sending.
_MAX_TURNS: Final = 1_000


def accept_client(connection: Connection, event: HandshakeReceived) -> list[Event]:
    """Accept every client, under the requested id or as ``client-1`` (F30, F31)."""
    return connection.accept(event.information.client_id or "client-1")


class ConnectionPair:
    """Two connections and the wire between them.

    :param client_limits: limits of the client; defaults if None.
    :param server_limits: limits of the server; defaults if None.
    :param now: the time to begin at, in seconds.
    :param decide: called for a client that has sent its hello; None leaves it undecided.
    :param chunk_bytes: the wire passes on at most this number of bytes at a time.

    Attributes: ``client``, ``server``, ``now``; ``client_events`` and ``server_events``, all events
    of each side; ``cut``: if set to True, sent bytes are lost in both directions without notice (a
    half-open connection).
    """

    def __init__(
        self,
        client_limits: Limits | None = None,
        server_limits: Limits | None = None,
        *,
        now: float = 0.0,
        decide: Decide | None = accept_client,
        chunk_bytes: int = 65_536,
    ) -> None:
        self.client = Connection(Role.CLIENT, client_limits, now=now)
        self.server = Connection(Role.SERVER, server_limits, now=now)
        self.now = now
        self.client_events: list[Event] = []
        self.server_events: list[Event] = []
        self.cut = False
        self._decide = decide
        self._chunk_bytes = chunk_bytes

    def exchange(self) -> tuple[list[Event], list[Event]]:
        """Carry bytes in both directions until neither side sends anything; return the client's and
        the server's events meanwhile.

        If a side has closed, the other gets the end of the stream.

        :raises AssertionError: if they never stop sending.
        """
        client_before, server_before = len(self.client_events), len(self.server_events)
        for _ in range(_MAX_TURNS):
            moved = self._carry(self.client, self.server, self.server_events)
            moved |= self._carry(self.server, self.client, self.client_events)
            if not moved:
                return self.client_events[client_before:], self.server_events[server_before:]
        raise AssertionError(f"client and server still talk after {_MAX_TURNS} turns")

    def handshake(
        self, information: ConnectionInformation | None = None
    ) -> tuple[list[Event], list[Event]]:
        """Connect the two and exchange until quiet; return the events of both.

        :param information: the client's description of itself; only the id ``client-1`` if None.
        """
        self.client.initiate(information or ConnectionInformation("client-1"))
        return self.exchange()

    def advance(self, seconds: float) -> tuple[list[Event], list[Event]]:
        """Exchange, then let time pass, and exchange again at every deadline; return the events
        meanwhile.

        :raises AssertionError: if a deadline does not change although it was handled.
        """
        client_before, server_before = len(self.client_events), len(self.server_events)
        until = self.now + seconds
        self.exchange()
        for _ in range(_MAX_TURNS):
            due = self._next_deadline()
            if due is None or due > until:
                self.now = until
                return self.client_events[client_before:], self.server_events[server_before:]
            self.now = max(self.now, due)
            self.client_events += self.client.on_deadline(self.now)
            self.server_events += self.server.on_deadline(self.now)
            self.exchange()
        raise AssertionError(f"a deadline is due {_MAX_TURNS} times at {self.now:g} s")

    def _next_deadline(self) -> float | None:
        deadlines = (self.client.next_deadline(), self.server.next_deadline())
        return min((due for due in deadlines if due is not None), default=None)

    def _carry(self, sender: Connection, receiver: Connection, events: list[Event]) -> bool:
        """Pass on the bytes of one side; return whether there were any."""
        data = sender.data_to_send()
        if self.cut:
            return False
        for start in range(0, len(data), self._chunk_bytes):
            self._take(receiver, data[start : start + self._chunk_bytes], events)
        if sender.state == State.CLOSED and receiver.state != State.CLOSED:
            events += receiver.receive_eof(self.now)
            assert isinstance(events[-1], ConnectionClosed)
            return True
        return bool(data)

    def _take(self, receiver: Connection, data: bytes, events: list[Event]) -> None:
        for event in receiver.receive(data, self.now):
            events.append(event)
            if (
                isinstance(event, HandshakeReceived)
                and self._decide is not None
                and receiver.state == State.AWAIT_DECISION
            ):
                events += self._decide(receiver, event)
