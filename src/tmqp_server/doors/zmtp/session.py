"""One connection of a ZeroMQ socket.

Theory of operation.  As both sides do in ZMTP, the session begins without waiting for the peer.
Once the peer has identified itself, the session asks the broker to accept it.  Then the session
identifies itself, and a *role* (``roles.py``, ``services.py``), chosen by the peer's type, does the
rest.  A permanent fault (a wrong type, a wrong password) is refused by ERROR, after which libzmq
does not reconnect.  A temporary one ends the connection, and libzmq reconnects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_LIMIT_EXCEEDED,
    RESULT_MISDIRECTED_REQUEST,
)
from tmqp.greetings import FirstBytes
from tmqp_server.doors.port import SYNTAX, DoorSession
from tmqp_server.doors.zmtp.context import ZmtpContext
from tmqp_server.doors.zmtp.message import DOOR, ZmtpRun
from tmqp_server.doors.zmtp.roles import SocketRole
from tmqp_server.doors.zmtp.services import role_of
from tmqp_server.engine.commands import Command, Connect, Credentials, Disconnect
from tmqp_server.engine.effects import (
    Accept,
    CloseSession,
    Confirm,
    Deliver,
    DeliverRun,
    Effect,
    Left,
    Refuse,
    Reply,
)
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.config import CURVE, PLAIN, is_pair, mirror_of
from tmqp_wires.zmtp.events import (
    Cancel,
    Event,
    MessageReceived,
    PeerError,
    PeerReady,
    Subscribe,
    Violation,
)
from tmqp_wires.zmtp.keys import key_text

__all__ = ["ZmtpSession"]

_NOTHING: Final[Sequence[Command]] = ()
_SHORT_ID: Final = 12
#: The reason that libzmq understands as a refused login (facts 1.4).
_DENIED: Final = "400"
#: Result codes of temporary faults.
_FOR_NOW: Final = (RESULT_BUSY, RESULT_LIMIT_EXCEEDED, RESULT_MISDIRECTED_REQUEST)
_STRANGER: Final = 0
_WAITING: Final = 1
_CONNECTED: Final = 2
#: The bytes that a waiting event takes besides its message.
_EVENT_BYTES: Final = 100


@final
class ZmtpSession(DoorSession):
    """One connection.

    :param context: what all connections share.
    :param config: this side of the connection.
    """

    def __init__(self, context: ZmtpContext, config: ZmtpConfig, number: int, now: float) -> None:
        super().__init__()
        self._context = context
        self._number = number
        self._zmtp = ZmtpConnection(config, now)
        self._mechanism = config.mechanism
        self._first = FirstBytes()
        self._standing = _STRANGER
        self._peer_type = ""
        self._role: SocketRole | None = None
        self._credentials: Credentials | None = None
        self._again = False
        self._early: list[Event] = []
        self._out: list[bytes] = []
        #: How many bytes were ever queued.
        self.said = 0
        self._collect()

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self.closed:
            return _NOTHING
        self._first.take(data)
        events = self._zmtp.receive(data, now)
        self._collect()
        return self._take(events)

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more; an incomplete message is dropped."""
        return self._end("the peer closed the connection")

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, without a message; libzmq reconnects."""
        return self._end(reason)

    def _end(self, reason: str) -> Sequence[Command]:
        if self.closed:
            return _NOTHING
        was_known = self._standing == _CONNECTED
        # Bytes that were passed to the socket are still sent; of the others, no message that other
        # consumers can get.
        answers = self.take_back(0)[1] if was_known else _NOTHING
        self.closed = True
        self.close_reason = reason
        self.forget_hello()
        self._standing = _STRANGER
        if self._context.pair == self._number:
            self._context.pair = 0
        if not was_known:
            return _NOTHING
        role = self._role
        assert role is not None, "it was chosen before"
        return [*answers, *role.last_words(), Disconnect(self._number)]

    def _refuse(self, reason: str, told: str) -> Sequence[Command]:
        """Refuse the peer permanently: send an ERROR, and end the connection."""
        self._zmtp.refuse(told)
        self._collect()
        return self._end(reason)

    def _take(self, events: list[Event]) -> Sequence[Command]:
        """Carry out events, or keep them until the broker has decided about the client."""
        if not events:
            return _NOTHING
        if self._standing == _CONNECTED:
            return self._carry(events)
        first = events[0]
        if self._standing == _WAITING:
            self._early += events
            return _NOTHING
        if isinstance(first, PeerReady):
            self._early += events[1:]
            return self._meet(first)
        return self._end(self._fault(first))

    def _fault(self, event: Event) -> str:
        if isinstance(event, PeerError):
            return f"the peer refused: {event.reason}"
        assert isinstance(event, Violation), "nothing else comes before READY"
        self.violation = SYNTAX
        return f"{self._first.sent()}: {event.text}"

    def _meet(self, peer: PeerReady) -> Sequence[Command]:
        """Ask the broker to accept the peer, if this endpoint serves its type."""
        context = self._context
        ours = context.options.socket_type
        kind = peer.socket_type
        if ours and not is_pair(ours, kind):
            return self._refuse(
                f"a {kind} socket connected to an endpoint of type {ours}",
                f"a {ours} socket does not talk to a {kind} socket",
            )
        if kind == "PAIR":
            if ours != kind:
                told = "a PAIR socket needs a separate endpoint with the option socket_type"
                return self._refuse(told, told)
            if context.pair:
                return self._end("a PAIR socket is connected already")
            context.pair = self._number
        self._standing = _WAITING
        self._peer_type = kind
        self._role = role_of(context, self._number, self, peer)
        if self._mechanism == PLAIN:
            user, secret = peer.user.decode("utf-8", "replace"), peer.password
            self._credentials = Credentials("password", secret.decode("utf-8", "replace"), user)
        elif self._mechanism == CURVE:
            optional = context.options.curve_anonymous
            key = key_text(peer.public_key)
            self._credentials = Credentials("public-key", key, optional=optional)
        if peer.identity:
            self._again = True
            name = context.names.channel_of(peer.identity)
            return [self._connect(f"{DOOR}:{name}")]
        return [self._connect(self._new_id())]

    def _new_id(self) -> str:
        short = self._context.new_id()[:_SHORT_ID]
        return f"{DOOR}:{self.peer or 'client'}/{short}"

    def _connect(self, client_id: str) -> Connect:
        role = self._role
        assert role is not None, "it was chosen before"
        role.client_id = client_id
        return Connect(
            self._number,
            None,
            client_id,
            None,
            None,
            DOOR,
            credentials=self._credentials,
        )

    def _carry(self, events: list[Event]) -> Sequence[Command]:
        """Carry out the events of an accepted peer."""
        role = self._role
        assert role is not None, "it was chosen before"
        commands: list[Command] = []
        raws: list[bytes] = []
        for event in events:
            if isinstance(event, MessageReceived):
                raws.append(event.raw)
            elif isinstance(event, Subscribe):
                role.subscribe(event.prefix)
            elif isinstance(event, Cancel):
                role.cancel(event.prefix)
            else:
                if raws:
                    commands += role.take(raws)
                commands += self._end(self._fault(event))
                return commands
        if raws:
            commands += role.take(raws)
        commands += role.settle()
        if role.fault:
            commands += self._end(role.fault)
        return commands

    def forget_hello(self) -> None:
        """Drop what was received from a client that will be refused."""
        self._zmtp.forget()
        self._early = []

    def held_bytes(self) -> int:
        """Bytes of incomplete input, and of input that waits for the decision about the client."""
        held = self._zmtp.held_bytes
        for event in self._early:
            held += _EVENT_BYTES
            if isinstance(event, MessageReceived):
                held += len(event.raw)
        return held

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if self.closed:
            return _NOTHING
        role = self._role
        if isinstance(effect, Accept):
            self._standing = _CONNECTED
            self._zmtp.ready(self._context.options.socket_type or mirror_of(self._peer_type))
            assert role is not None, "it was chosen before"
            commands = list(role.begin())
            early, self._early = self._early, []
            self._collect()
            commands += self._carry(early)
            return commands
        if isinstance(effect, Refuse):
            return self._refused(effect.code)
        if isinstance(effect, CloseSession):
            self._standing = _STRANGER
            return self._end(effect.reason)
        if role is not None and isinstance(effect, Reply):
            role.replied(effect)
        elif role is not None and isinstance(effect, Confirm):
            role.confirmed(effect)
        elif role is not None and isinstance(effect, Left):
            # The socket expects a permanent endpoint: it reconnects, and creates the channel again.
            return self._end(f"the channel {effect.channel!r} was removed")
        return _NOTHING

    def _refused(self, code: int) -> Sequence[Command]:
        if self._again and code in (RESULT_BUSY, RESULT_BAD_REQUEST):
            # Another client has the identity; it is needed only to recognize a client that
            # reconnects.
            self._again = False
            return [self._connect(self._new_id())]
        reason = f"refused with {code}"
        return self._end(reason) if code in _FOR_NOW else self._refuse(reason, _DENIED)

    # -- bytes out ------------------------------------------------------------------------------

    def say(self, data: bytes) -> None:
        """Queue the frames of a message; with CURVE, seal them first."""
        if self._mechanism != CURVE:
            self._queue(data)
            return
        # Boxes have increasing numbers, so all output must be encrypted here.
        self._zmtp.send_frames(data)
        self._collect()

    def _queue(self, data: bytes) -> None:
        self._out.append(data)
        self.outbound_bytes += len(data)
        self.said += len(data)

    def subscribe(self, prefix: bytes) -> None:
        """Subscribe to a prefix at a publisher."""
        self._zmtp.subscribe(prefix)

    def _collect(self) -> None:
        """Queue the protocol's own output."""
        data = self._zmtp.data_to_send()
        if data:
            self._queue(data)

    def deliver(self, data: bytes) -> None:
        """Take a direct message, such as a reply."""
        role = self._role
        if role is not None and not self.closed:
            role.hear(data)

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery in the form for the peer's type."""
        role = self._role
        if role is not None and not self.closed:
            role.deliver(effect, shared)

    def deliver_own_run(self, effect: DeliverRun, shared: bytes, number: int) -> None:
        """Queue the deliveries of a run; with CURVE, each is sealed separately."""
        role = self._role
        if role is None or self.closed:
            return
        wire = effect.run.wire
        if isinstance(wire, ZmtpRun) and self._mechanism != CURVE:
            role.deliver_run(effect, wire.some(effect.start, effect.step, effect.stop), shared)
            return
        for each in effect.deliveries():
            role.deliver(each, self._context.frames_of(each))

    def data_to_send(self) -> bytes:
        """Everything queued."""
        if not self._out:
            return b""
        data = b"".join(self._out)
        self._out = []
        self.outbound_bytes = 0
        if self._role is not None:
            self._role.handed_over()
        return data

    def written(self, now: float) -> Sequence[Command]:
        """The kernel has taken all bytes."""
        role = self._role
        return _NOTHING if role is None or self.closed else role.written()

    def left(self, waiting: int) -> None:
        """The kernel has taken all bytes except the last *waiting* ones."""
        if self._role is not None and not self.closed:
            self._role.left(self.said - self.outbound_bytes - waiting)

    def take_back(self, waiting: int) -> tuple[int, Sequence[Command]]:
        """Send no message that has not been sent in part, if other consumers can get it."""
        role = self._role
        if role is None or self.closed:
            return 0, _NOTHING
        end, commands = role.take_back(self.said - self.outbound_bytes - waiting)
        if end < 0:
            return 0, commands
        surplus = self.said - end
        own = min(self.outbound_bytes, surplus)
        if own:
            data = b"".join(self._out)
            self.outbound_bytes = len(data) - own
            self._out = [data[: self.outbound_bytes]]
        self.said = end
        return surplus - own, commands

    # -- time -----------------------------------------------------------------------------------

    def excuse_silence(self, now: float) -> None:
        """Count the peer as heard now, because it was not read from."""
        self._zmtp.excuse_silence(now)

    def next_deadline(self) -> float | None:
        """When the peer must have sent something, or a PING is due."""
        return None if self.closed else self._zmtp.next_deadline()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Send a PING, or give up the peer."""
        if self.closed:
            return _NOTHING
        events = self._zmtp.on_deadline(now)
        self._collect()
        return self._end(self._fault(events[0])) if events else _NOTHING
