"""The port between doors and the server: what a door must offer, whatever it speaks.

A :class:`Door` is one protocol; it opens a :class:`DoorSession` for each connection.  A session
turns bytes into the engine's commands and the engine's effects into bytes.  Both are pure: they
get the time as an argument and ids from an injected source, and never see a socket or a queue.

A message keeps the form in which its door received it (``wire``).  A door that is to deliver one
of another kind encodes its letter (``letters.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tmqp._compat import mypyc_attr
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.rewriting import frame_for_node
from tmqp_server.engine.commands import Command, Push
from tmqp_server.engine.effects import Deliver, DeliverRun, Effect, Forward, ForwardRun, Inform
from tmqp_server.engine.model.message import Message

__all__ = ["SERVER_STOPS", "SYNTAX", "Door", "DoorSession", "IdSource", "OwnBodies", "QueuesOnly"]

#: Why every session is closed in the end.
SERVER_STOPS: Final = "the server stops"

#: What a peer has broken whose bytes are not its protocol's.
SYNTAX: Final = "syntax"

#: Returns a new unique id, 32 lower-case hexadecimal characters (F45).
IdSource = Callable[[], str]


@mypyc_attr(allow_interpreted_subclasses=True)
class DoorSession:
    """One connection of one protocol.

    Attributes: ``closed``, nothing more will be read: send what is left, then close the transport;
    ``close_reason``, why, in a few words for a log, empty while it is not; ``outbound_bytes``,
    about how much has been queued since the last :meth:`data_to_send`: all that answers and
    deliveries are, at least; ``work``, units (``Broker.take_work``) that reading the last bytes
    took beyond what all bytes take; ``hurried``, :meth:`apply` has made its deadline nearer, or
    lets the peer be read again; ``peer``, where the connection comes from (``127.0.0.1:40000``),
    empty if that is not known: set after the session was opened, before it gets any bytes;
    ``violation``, the rule of the protocol that the peer broke, by which such ends are counted: one
    of a few words, ``syntax`` where there are no others; ``trusted``, the session is the server's
    own, and nobody is asked what it may do.

    A session stops its peer by ``reads``: while it is false no further chunk is read, so a peer
    waits in its own kernel.  It knows that its answers and deliveries left by ``wants_written``:
    once it is set, :meth:`written` is called when all that was queued is in the kernel's hands.

    A connection that was opened in the clear changes to TLS by ``wants_tls``, set together with
    ``wants_written``: when what was queued before has left, the handshake begins, and
    :meth:`secured` is called at its end.  Nothing is read meanwhile, and what is queued waits.
    Bytes that came in the clear behind the request are not the peer's for certain: refuse them.

    A connection with several consumers opens a *branch* for each (``OpenBranch``).  Their effects
    come to this session as its own do, with the branch's number; its door has ``per_session`` set.
    """

    def __init__(self) -> None:
        self.closed = False
        self.close_reason = ""
        self.outbound_bytes = 0
        self.work = 0
        self.peer = ""
        self.violation = ""
        self.trusted = False
        self.hurried = False
        self.reads = True
        self.wants_written = False
        self.wants_tls = False

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        raise NotImplementedError

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more."""
        raise NotImplementedError

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session; may lead to further commands (messages
        that waited for the decision about the connection)."""
        raise NotImplementedError

    def deliver(self, data: bytes) -> None:
        """Queue what one of the door's ``encode_`` methods has made."""
        raise NotImplementedError

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery whose beginning is this session's own, where ``Door.per_session`` is
        set: *shared* is what ``encode_delivery`` has made for all, *number* tells to whom of the
        connection it goes, to itself or to a branch."""
        self.deliver(shared)

    def deliver_own_run(self, effect: DeliverRun, shared: bytes, number: int) -> None:
        """The same for the deliveries of a run at once, where ``Door.own_runs`` is set: *shared* is
        what ``encode_run`` has made."""
        raise NotImplementedError

    def written(self, now: float) -> Sequence[Command]:
        """All bytes were passed on, once after ``wants_written`` was set."""
        return ()

    def left(self, waiting: int) -> None:
        """All bytes were passed on but for the last *waiting*, while ``wants_written`` is set."""

    def take_back(self, waiting: int) -> tuple[int, Sequence[Command]]:
        """The connection ends, be it by the peer or by this side, and of the bytes that were given
        to be sent the last *waiting* have not left.  Returns how many of these, from the end, are
        not to be sent, for their messages go to somebody else, and what is to be done about the
        others; nothing that the session still holds may be among the bytes."""
        return 0, ()

    def gone(self) -> None:
        """The connection is over, however it ended; nothing else is asked of the session."""

    def excuse_silence(self, now: float) -> None:
        """The peer was not read from until now, for a push of it waited for room
        (``PushExtras.wait_ms``): that nothing was heard from it says nothing."""

    def secured(self, now: float) -> Sequence[Command]:
        """All is encrypted from here on, once after ``wants_tls`` was set."""
        return ()

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, the protocol's polite way."""
        raise NotImplementedError

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        raise NotImplementedError

    def next_to_send(self) -> bytes:
        """As :meth:`data_to_send`, or a portion of it: called until it is empty."""
        return self.data_to_send()

    def encoder(self) -> Door | None:
        """The door that encodes what this session shares with others, asked when its client is
        accepted; None for the one that opened it.  A WebSocket speaks another door's protocol."""
        return None

    def held_bytes(self) -> int:
        """About how much memory is taken by what the peer has sent and nobody has processed."""
        return 0

    def forget_hello(self) -> None:
        """Drop what the peer has sent: it will be refused, but not at once."""

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` wants to be called; None for never."""
        raise NotImplementedError

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do what is due (keep-alive, timeouts)."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Door:
    """One protocol; ``name`` is its own.

    A door that is not compiled sets these in ``__init__``: what its class has is not seen by
    compiled code.
    """

    name = ""
    #: Kept with messages on disk, so that they find their door again; no two doors share one.
    number = 0
    #: Each session writes something of its own before a delivery: ``DoorSession.deliver_own``.
    per_session = False
    #: Each session does so for a whole run: ``DoorSession.deliver_own_run``.
    own_runs = False
    #: Its clients are operators: it is open while the server drains, and closed last.
    for_operators = False

    def open(self, session: int, now: float) -> DoorSession:
        """A new connection with the engine's number ``session``."""
        raise NotImplementedError

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The bytes of a delivery: made once, shared by all sessions that get it."""
        raise NotImplementedError

    def encode_run(self, effect: DeliverRun) -> bytes:
        """The bytes of the deliveries of a run: made once, shared like a delivery's.

        A door that brings runs may have a quicker way.
        """
        return b"".join([self.encode_delivery(each) for each in effect.deliveries()])

    def encode_forward(self, effect: Forward) -> bytes:
        """The bytes of what another client said: made once, shared like a delivery's."""
        raise NotImplementedError

    def encode_forward_run(self, effect: ForwardRun) -> bytes:
        """The bytes of what another client said several times in a row: made once, as well.

        A door that brings runs may have a quicker way.
        """
        return b"".join([self.encode_forward(each) for each in effect.forwards()])

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """What is kept of a message, and where in it the payload begins and how long it is.

        It should be as long as the size of its push, by which queues count what they have on disk.
        """
        raise NotImplementedError

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """The messages of a message set (see ``transaction_commands``): of each what is kept of it,
        where in that the payload begins and how long it is, and whether it has high priority.

        :raises ValueError: when it cannot be read.
        """
        raise NotImplementedError

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A kept message again: its wire form, id, source, channel as spelt or nothing for that of
        its queue, and size in bytes.

        :raises ValueError: when it cannot be read.
        """
        raise NotImplementedError

    def letter(self, wire: object) -> Letter:
        """The contents of a message of this door, for a door of another kind.

        Id, source, channel and queue are those of the message, whatever the letter says; of what a
        client says to another one, and for another server of the cluster, the source, and for the
        other client its id, are the letter's.
        """
        raise NotImplementedError

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """A message's wire form with these text headers in the place of its own, and how many bytes
        larger it is; as it is, and 0, where the protocol has no headers."""
        return wire, 0

    def encode_for_node(self, command: Command) -> bytes | None:
        """What a command of a client asks, in TMQP's own form, for another server of the cluster;
        None for what is not passed on.

        A door passes on pushes, unless it knows better.
        """
        if not isinstance(command, Push):
            return None
        frame = frame_for_node(self.letter(command.wire), command)
        return frame.forwarded(False, frame.pending_acknowledge, frame.ttl - 1)

    def encode_event(self, effect: Inform) -> bytes:
        """The bytes of an event: made once, shared like a delivery's."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class OwnBodies:
    """What a protocol makes of its own messages, for a store and for other doors, without a door:
    a protocol without transactions and headers, unless it knows better.

    A subclass has the ``name`` and the ``number`` of its door.
    """

    def letter(self, wire: object) -> Letter:
        """See ``Door.letter``."""
        raise NotImplementedError

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """The message as it is: it has no headers."""
        return wire, 0

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """See ``Door.stored``."""
        raise NotImplementedError

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """Nothing: no transaction is filled.

        :raises ValueError: always.
        """
        raise ValueError(f"{len(data)} bytes of a transaction are not from this door")

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class QueuesOnly(Door):
    """A protocol about queues alone: its clients say nothing to each other, and, unless it knows
    better, are notified of no events.

    :param bodies: reads its messages; None for a protocol that has none.
    """

    def __init__(self, bodies: OwnBodies | None = None) -> None:
        self._bodies = OwnBodies() if bodies is None else bodies

    def encode_forward(self, effect: Forward) -> bytes:
        """Nothing."""
        return b""

    def encode_event(self, effect: Inform) -> bytes:
        """Nothing."""
        return b""

    def letter(self, wire: object) -> Letter:
        """What a message says."""
        return self._bodies.letter(wire)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """A message with these headers, if the protocol has any."""
        return self._bodies.with_headers(wire, headers)

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """What is kept of a message."""
        return self._bodies.stored(message)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """Nothing.

        :raises ValueError: always.
        """
        return self._bodies.unpacked(data)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A kept message again."""
        return self._bodies.restored(body)
