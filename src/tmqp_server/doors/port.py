"""The port between doors and the server: the interface of every door.

A :class:`Door` is one protocol; it opens a :class:`DoorSession` for each connection.  A session
turns bytes into the engine's commands and the engine's effects into bytes.  Both are pure: they
get the time as an argument and ids from an injected source, and never see a socket or a queue.

A message keeps the form in which its door received it (``wire``).  A door that delivers a message
of another protocol encodes the message's letter (``letters.py``).
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

#: The reason with which sessions are closed when the server stops.
SERVER_STOPS: Final = "the server stops"

#: The violation of a peer whose bytes are invalid in its protocol.
SYNTAX: Final = "syntax"

#: Returns a new unique id, 32 lower-case hexadecimal characters (F45).
IdSource = Callable[[], str]


@mypyc_attr(allow_interpreted_subclasses=True)
class DoorSession:
    """One connection of one protocol.

    Attributes: ``closed``, nothing more will be read: send what is left, then close the transport;
    ``close_reason``, why it closed, in a few words for a log, empty while it is open;
    ``outbound_bytes``, about how many bytes were queued since the last :meth:`data_to_send`, at
    least all answers and deliveries; ``work``, units (``Broker.take_work``) that reading the last
    bytes took beyond the usual work for their number; ``hurried``, :meth:`apply` has made the
    deadline earlier, or allows reading from the peer again; ``peer``, the address of the peer
    (``127.0.0.1:40000``), empty if it is not known: set after the session was opened, before it
    gets any bytes; ``violation``, a word for the rule of the protocol that the peer broke, for
    counters: ``syntax`` unless the protocol has others; ``trusted``, the session is the server's
    own, and its rights are not checked.

    A session pauses its peer with ``reads``: while it is false, no further chunk is read, so the
    peer's data wait in the kernel.  To learn when its answers and deliveries have been sent, it
    sets ``wants_written``: then :meth:`written` is called once the kernel has taken everything that
    was queued.

    To change an unencrypted connection to TLS, a session sets ``wants_tls`` together with
    ``wants_written``: when everything queued before has been sent, the handshake begins, and
    :meth:`secured` is called at its end.  Nothing is read meanwhile, and queued bytes wait.  A
    session must refuse unencrypted bytes that follow the request for TLS, because an attacker may
    have inserted them.

    A connection with several consumers opens a *branch* for each (``OpenBranch``).  Their effects
    are passed to this session like its own, with the branch's number; its door has ``per_session``
    set.
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
        """Carry out an effect meant for this session.  Returns further commands, such as those of
        messages that waited for the decision about the connection."""
        raise NotImplementedError

    def deliver(self, data: bytes) -> None:
        """Queue bytes that one of the door's ``encode_`` methods returned."""
        raise NotImplementedError

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery that each session writes differently; called if ``Door.per_session`` is
        set.  *shared* is what ``encode_delivery`` returned for all sessions, *number* is the number
        of the session or of the branch that gets the delivery."""
        self.deliver(shared)

    def deliver_own_run(self, effect: DeliverRun, shared: bytes, number: int) -> None:
        """As :meth:`deliver_own`, for all deliveries of a run; called if ``Door.own_runs`` is set.
        *shared* is what ``encode_run`` returned."""
        raise NotImplementedError

    def written(self, now: float) -> Sequence[Command]:
        """The kernel has taken all bytes; called once after ``wants_written`` was set."""
        return ()

    def left(self, waiting: int) -> None:
        """The kernel has taken all bytes except the last *waiting* ones; called while
        ``wants_written`` is set."""

    def take_back(self, waiting: int) -> tuple[int, Sequence[Command]]:
        """The connection ends, from either side, and the kernel has not taken the last *waiting*
        bytes of those that the session returned for sending.  Returns how many of these, counted
        from the end, must not be sent, because their messages go to other consumers, and the
        commands for the messages that are still sent.  Bytes that the session itself still holds do
        not count."""
        return 0, ()

    def gone(self) -> None:
        """The connection has ended, for whatever reason; no other method is called after this."""

    def excuse_silence(self, now: float) -> None:
        """Do not take the peer's silence until now for a failure: it was not read from, because one
        of its pushes waited for room (``PushExtras.wait_ms``)."""

    def secured(self, now: float) -> Sequence[Command]:
        """Everything is encrypted from here on; called once after ``wants_tls`` was set."""
        return ()

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, with the message that the protocol has for this, if any."""
        raise NotImplementedError

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        raise NotImplementedError

    def next_to_send(self) -> bytes:
        """The next portion of :meth:`data_to_send`; called until it returns nothing."""
        return self.data_to_send()

    def encoder(self) -> Door | None:
        """The door that encodes what this session shares with others; None for the door that opened
        it.  It is asked for when the client is accepted, because a WebSocket carries another door's
        protocol."""
        return None

    def held_bytes(self) -> int:
        """About how many bytes of memory the peer's unprocessed input takes."""
        return 0

    def forget_hello(self) -> None:
        """Drop what the peer has sent, because the peer will be refused after a delay."""

    def next_deadline(self) -> float | None:
        """The engine's time at which :meth:`on_deadline` must be called; None for never."""
        raise NotImplementedError

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do what is due (keep-alive, timeouts)."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Door:
    """One protocol of the server; ``name`` is the protocol's name.

    A door that is not compiled sets these attributes in ``__init__``, because compiled code does
    not see the attributes of an interpreted class.
    """

    name = ""
    #: Stored with messages, to find their door again; unique for each door.
    number = 0
    #: Each session writes deliveries differently: ``DoorSession.deliver_own``.
    per_session = False
    #: Each session writes whole runs differently: ``DoorSession.deliver_own_run``.
    own_runs = False
    #: Its clients are operators: it is open while the server drains, and closed last.
    for_operators = False

    def open(self, session: int, now: float) -> DoorSession:
        """Open a session for a new connection; *session* is its number in the engine."""
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
        """The bytes of another client's direct message or answer: made once, shared like a
        delivery's."""
        raise NotImplementedError

    def encode_forward_run(self, effect: ForwardRun) -> bytes:
        """The bytes of consecutive direct messages or answers of one client: made once, as well.

        A door that brings runs may have a quicker way.
        """
        return b"".join([self.encode_forward(each) for each in effect.forwards()])

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The stored form of a message, the offset of the payload in it, and the payload's size.

        It should be as long as the size in the message's push, because queues count their bytes on
        disk by that.
        """
        raise NotImplementedError

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """The messages of a message set (see ``transaction_commands``): for each, its stored form,
        the offset and size of the payload in it, and whether it has high priority.

        :raises ValueError: when it cannot be read.
        """
        raise NotImplementedError

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """Read a stored message: returns its wire form, id, source, channel and size in bytes.  The
        channel is written as by the producer, and empty if it is that of the queue.

        :raises ValueError: when it cannot be read.
        """
        raise NotImplementedError

    def letter(self, wire: object) -> Letter:
        """The contents of a message of this door, for a door of another kind.

        The caller replaces id, source, channel and queue of the letter by those of the message.  Of
        a direct message, the letter's id and source are used; of a message for another server of
        the cluster, its source.
        """
        raise NotImplementedError

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """Replace the text headers of a message; returns the new wire form and how many bytes
        larger it is.  If the protocol has no headers, the form is unchanged."""
        return wire, 0

    def encode_for_node(self, command: Command) -> bytes | None:
        """A client's command as a TMQP message for another server of the cluster; None if such
        commands are not forwarded.

        By default, only pushes are forwarded.
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
    """Converts a protocol's messages to their stored form and to letters; works without a door.  By
    default, the protocol has no transactions and no headers.

    A subclass has the ``name`` and the ``number`` of its door.
    """

    def letter(self, wire: object) -> Letter:
        """See ``Door.letter``."""
        raise NotImplementedError

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """The message unchanged, because the protocol has no headers."""
        return wire, 0

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """See ``Door.stored``."""
        raise NotImplementedError

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """Reject the bytes, because the protocol has no transactions.

        :raises ValueError: always.
        """
        raise ValueError(f"{len(data)} bytes of a transaction are not from this door")

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class QueuesOnly(Door):
    """A protocol that has only queues: no direct messages and, by default, no events.

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
        """The letter of a message."""
        return self._bodies.letter(wire)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """A message with these headers, if the protocol has any."""
        return self._bodies.with_headers(wire, headers)

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The stored form of a message; see ``Door.stored``."""
        return self._bodies.stored(message)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """Nothing.

        :raises ValueError: always.
        """
        return self._bodies.unpacked(data)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A message from its stored form; see ``Door.restored``."""
        return self._bodies.restored(body)
