"""One connection, on either side: pass in received bytes and the current time.

Theory of operation.  Everything that happens becomes one :class:`tmqp.state.Input`.  The connection
looks the input up in the flattened table of :mod:`tmqp.state` and carries out the action that it
finds; no other code changes the state.  Bytes from the peer never raise: a violation becomes a
:class:`ProtocolViolated` event, an answer to send, and a closed connection.  A mistake of the
*program* raises :class:`LocalProtocolError` and changes nothing.

The caller has four duties (``docs/io-contract.md``): feed what it reads, send what
:meth:`Connection.data_to_send` returns in order, call :meth:`Connection.on_deadline` at
:meth:`Connection.next_deadline`, and close the transport after ``ConnectionClosed``.  Times are
seconds of any monotonic clock.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.codec import FrameDecoder
from tmqp.constants import (
    ACCEPTED_PREAMBLES,
    PING_BYTES,
    PONG_BYTES,
    PREAMBLE,
    SERVER_ACCEPTED,
    SERVER_HELLO,
    TYPE_ACKNOWLEDGE,
    TYPE_CUSTOM,
    TYPE_DIRECT_MESSAGE,
    TYPE_EVENT,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_ROUTER,
    TYPE_SERVER,
    TYPE_TERMINATE,
    ResultCode,
)
from tmqp.errors import AbuseError, LocalProtocolError, RemoteProtocolError
from tmqp.events import (
    AcknowledgeReceived,
    ConnectionClosed,
    CustomMessageReceived,
    DirectMessageReceived,
    Event,
    EventNotificationReceived,
    EventSubscriptionReceived,
    HandshakeAccepted,
    HandshakeReceived,
    MessageDropped,
    PingReceived,
    PongReceived,
    PreambleReceived,
    ProtocolViolated,
    PullRequestReceived,
    QueueMessageReceived,
    ResponseReceived,
    RouterMessageReceived,
    RunReceived,
    ServerMessageReceived,
    TerminateReceived,
)
from tmqp.farewells import farewell, refusal, refused
from tmqp.frames import Frame
from tmqp.greetings import name_greeting
from tmqp.header_names import HeaderNames
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp.pulls import PendingPulls
from tmqp.state import (
    CLIENT_CELLS,
    INPUT_OF_TYPE,
    SERVER_CELLS,
    STATE_BITS,
    STATE_MASK,
    WIDTH,
    Action,
    Input,
    Role,
    State,
)

__all__ = ["Connection"]

# Plain integers of the enumerations: comparing with these costs nothing when compiled.
_AWAIT_PREAMBLE: Final = 1
_AWAIT_HELLO: Final = 2
_AWAIT_DECISION: Final = 3
_AWAIT_REPLY: Final = 4
_AWAIT_ACCEPT: Final = 5
_OPEN: Final = 6
_CLOSED: Final = 7
_DELIVER: Final = 4

_PREAMBLE_BYTES: Final = 8
#: Pieces from this size on are not joined with others: see ``next_to_send``.
_LARGE_BYTES: Final = 65_536
_UNLIMITED: Final = 1 << 60


@final
class Connection:
    """One connection of the protocol, as client or as server.

    :param role: which side this is.
    :param limits: limits for the peer; defaults if None.
    :param now: when the transport was opened, in seconds; the handshake timeout starts then.

    Attributes to read: ``role``, ``state``, ``limits``, ``client_id`` (known once accepted),
    ``information`` (the client's description of itself), ``error`` (the violation that ended it).
    """

    def __init__(
        self, role: Role = Role.CLIENT, limits: Limits | None = None, *, now: float = 0.0
    ) -> None:
        self.role: Role = role
        self.limits: Limits = Limits() if limits is None else limits
        self.client_id: str = ""
        self.information: ConnectionInformation | None = None
        self.error: RemoteProtocolError | None = None
        server = role == Role.SERVER
        self._cells: list[int] = SERVER_CELLS if server else CLIENT_CELLS
        self._server: bool = server
        self._state: int = int(State.AWAIT_PREAMBLE if server else State.IDLE)
        self._decoder: FrameDecoder = FrameDecoder(self.limits)
        self._greeting: bytes = b""
        self._out: list[bytes] = []
        self._has_large = False
        self._started: float = now
        self._last_received: float = now
        self._quiet_since: float = now
        self._pings: int = 0
        self._pulls: PendingPulls = PendingPulls(self.limits.max_pending_pulls)

    @property
    def state(self) -> State:
        """The state of the connection."""
        return State(self._state)

    @property
    def makes_runs(self) -> bool:
        """Whether similar consecutive messages, or acknowledgements, arrive as one ``RunReceived``;
        for the open connection of a server that forwards most messages."""
        return self._decoder.makes_runs

    @makes_runs.setter
    def makes_runs(self, wanted: bool) -> None:
        self._decoder.makes_runs = wanted

    def mix_runs(self, wanted: bool) -> None:
        """Set whether one run may contain messages for several queues and of both priorities."""
        self._decoder.mixes_runs = wanted

    def read_headers(self, names: HeaderNames) -> None:
        """Set the headers that the program reads: a message that may have one of them is never in a
        run.  Until this is called, no message with headers is."""
        self._decoder.read_headers = names

    @property
    def buffered(self) -> int:
        """The number of received bytes that are buffered."""
        return self._decoder.buffered

    @property
    def wanted(self) -> int:
        """The number of bytes missing of the incomplete message, as far as known; 0 for none.

        A hint for large messages: reading this number of bytes from the transport saves copies.
        """
        return self._decoder.wanted

    def __repr__(self) -> str:
        return f"<Connection {self.role.name} {self.state.name} client_id={self.client_id!r}>"

    # -- in: bytes ------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> list[Event]:
        """Pass in bytes that the transport read at ``now``; return the events in them.

        Never raises for the contents of the bytes.  Empty ``data`` has no meaning; the end of the
        stream is :meth:`receive_eof`.
        """
        events: list[Event] = []
        chunk: bytes = data if isinstance(data, bytes) else bytes(data)
        if not chunk or self._state == _CLOSED:
            return events
        self._last_received = now
        self._quiet_since = now
        self._pings = 0
        if self._state == _OPEN:
            self._work(chunk, events)
            return events
        if self._state == int(State.IDLE):
            early = RemoteProtocolError("unexpected-message", "the server spoke before the client")
            self._fault(early, events)
            return events
        if self._state == _AWAIT_PREAMBLE or self._state == _AWAIT_REPLY:
            chunk = self._take_preamble(chunk, events)
        if self._state == _AWAIT_HELLO:
            self._take_hello(chunk, events)
        elif self._state == _AWAIT_DECISION:
            self._decoder.hold(chunk)
            self._check_held(events)
        elif self._state != _CLOSED:
            self._work(chunk, events)
        return events

    def receive_eof(self, now: float = 0.0) -> list[Event]:
        """Handle the end of the peer's stream; inside a message it is a violation."""
        events: list[Event] = []
        if self._state == _CLOSED:
            return events
        torn = self._decoder.buffered > 0 or len(self._greeting) > 0
        if torn and self._state != _AWAIT_DECISION:
            self._advance(Input.TORN)
            self._violate(RemoteProtocolError("torn", "the stream ended inside a message"), events)
        else:
            self._advance(Input.END)
            self._end("end-of-stream", events)
        return events

    def _take_preamble(self, chunk: bytes, events: list[Event]) -> bytes:
        """Complete the peer's eight bytes; return what follows them."""
        seen = self._greeting + chunk[: _PREAMBLE_BYTES - len(self._greeting)]
        wanted = ACCEPTED_PREAMBLES if self._server else (PREAMBLE,)
        if not any([preamble.startswith(seen) for preamble in wanted]):
            # Detected at the first wrong byte; nothing is sent, because it is not TMQP (F24).
            greeting = name_greeting(self._greeting + chunk)
            self._advance(Input.WRONG_PREAMBLE)
            self._violate(
                RemoteProtocolError("preamble", f"not TMQP: the peer sent {greeting}"), events
            )
            return b""
        rest = chunk[len(seen) - len(self._greeting) :]
        if len(seen) < _PREAMBLE_BYTES:
            self._greeting = seen
            return b""
        self._greeting = b""
        if self._advance(Input.PREAMBLE) == int(Action.ANSWER_PREAMBLE):
            self._out.append(seen)  # the same eight bytes, as one write (F22, F23)
            bound = self.limits.max_hello_bytes
            self._decoder.restrict(bound, bound, bound)
        events.append(PreambleReceived(seen))
        return rest

    def _take_hello(self, chunk: bytes, events: list[Event]) -> None:
        """Read only the first message; everything after it waits for the decision."""
        for frame in self._decoder.feed(chunk, 1):
            kind = INPUT_OF_TYPE[frame.type]
            if frame.type == TYPE_SERVER and frame.content_type == SERVER_HELLO:
                try:
                    information = ConnectionInformation.parse(frame.payload, self.limits)
                except RemoteProtocolError as error:
                    self._fault(error, events)
                    return
                kind = int(Input.HELLO)
                self.information = information
                self._advance(kind)
                events.append(HandshakeReceived(information, frame))
                limits = self.limits
                self._decoder.restrict(
                    limits.max_payload_bytes, limits.max_header_bytes, _UNLIMITED
                )
                self._check_held(events)
                return
            if self._advance(kind) == int(Action.RECEIVE_TERMINATE):
                events.append(TerminateReceived())
                self._end("terminated", events)
                return
            self._violate(
                RemoteProtocolError(
                    "hello-expected",
                    "the first message must be the connection information (type Server, 101)",
                ),
                events,
            )
            return
        self._check_decoder(events)

    def _check_held(self, events: list[Event]) -> None:
        most = self.limits.max_early_bytes
        if self._decoder.buffered > most:
            early = f"more than {most} bytes before being accepted"
            self._fault(AbuseError("early-limit", early), events)

    # -- in: messages ---------------------------------------------------------------------------

    def _work(self, chunk: bytes, events: list[Event]) -> None:
        """Decode a chunk and turn each message into an event: the hot path."""
        decoder = self._decoder
        frames = decoder.feed(chunk)
        if not decoder.runs:
            self._take(frames, events)
        else:
            at = 0
            for run in decoder.runs:
                self._take(frames[at : run.at], events)
                if self._state == _CLOSED:
                    return
                events.append(RunReceived(run))
                at = run.at + 1
            self._take(frames[at:], events)
        self._check_decoder(events)

    def _take(self, frames: list[Frame], events: list[Event]) -> None:
        cells = self._cells
        inputs = INPUT_OF_TYPE
        for frame in frames:
            kind = frame.type
            state = self._state
            if frame.ttl == 0:
                # Each reader subtracts one hop; messages without any are dropped unseen (F11, F13).
                events.append(MessageDropped(frame, "ttl"))
                continue
            cell = cells[state * WIDTH + inputs[kind]]
            if cell == (_DELIVER << STATE_BITS | _OPEN):
                self._deliver(kind, frame, events)
            else:
                self._take_special(kind, frame, events)
                if self._state == _CLOSED:
                    return

    def _deliver(self, kind: int, frame: Frame, events: list[Event]) -> None:
        if kind == TYPE_QUEUE_MESSAGE:
            # Only a client pulls: a server, which mostly forwards, must not spend time on this.
            looked_for = not self._server and self._pulls.any()
            pulled = self._pulls.message(frame) if looked_for else None
            events.append(QueueMessageReceived(frame) if pulled is None else pulled)
        elif kind == TYPE_ACKNOWLEDGE:
            events.append(AcknowledgeReceived(frame))
        elif kind == TYPE_SERVER:
            events.append(ServerMessageReceived(frame))
        elif kind == TYPE_DIRECT_MESSAGE:
            events.append(DirectMessageReceived(frame))
        elif kind == TYPE_RESPONSE:
            events.append(ResponseReceived(frame))
            completed = self._pulls.response(frame) if self._pulls.any() else None
            if completed is not None:
                events.append(completed)
        elif kind == TYPE_PULL_REQUEST:
            events.append(PullRequestReceived(frame))
        elif kind == TYPE_EVENT:
            if self._server:
                events.append(EventSubscriptionReceived(frame))
            else:
                events.append(EventNotificationReceived(frame))
        elif kind == TYPE_ROUTER:
            events.append(RouterMessageReceived(frame))
        else:
            assert kind == TYPE_CUSTOM, "the table delivers no other type"
            events.append(CustomMessageReceived(frame))

    def _take_special(self, kind: int, frame: Frame, events: list[Event]) -> None:
        """Handle a message that is not simply delivered in state OPEN."""
        item = INPUT_OF_TYPE[kind]
        if self._state == _AWAIT_ACCEPT and kind == TYPE_SERVER:
            if frame.content_type == SERVER_ACCEPTED:
                item = int(Input.ACCEPTED)
            elif frame.content_type >= int(ResultCode.BAD_REQUEST):
                item = int(Input.REFUSED)
        action = self._advance(item)
        if action == _DELIVER:
            self._deliver(kind, frame, events)
        elif action == int(Action.ANSWER_PING):
            self._out.append(PONG_BYTES)
            events.append(PingReceived())
        elif action == int(Action.NOTE_PONG):
            events.append(PongReceived())
        elif action == int(Action.DROP):
            unknown = item == int(Input.UNKNOWN_TYPE)
            events.append(MessageDropped(frame, "unknown-type" if unknown else "not-for-this-role"))
        elif action == int(Action.RECEIVE_TERMINATE):
            events.append(TerminateReceived())
            self._end("terminated", events)
        elif action == int(Action.RECEIVE_ACCEPT):
            self.client_id = frame.target or self.client_id  # adopt it (F31)
            events.append(HandshakeAccepted(self.client_id))
        elif action == int(Action.RECEIVE_REFUSAL):
            events.append(refused(frame))
            self._end("refused", events)
        else:
            illegal = f"a message of type 0x{kind:02x} is not legal here"
            self._violate(RemoteProtocolError("unexpected-message", illegal), events)

    # -- out: what the program says -------------------------------------------------------------

    def initiate(self, information: ConnectionInformation, message_id: str = "") -> None:
        """Client: queue the preamble and the connection information as one write (F21, F22).

        :raises LocalProtocolError: if called twice, on a server, or the information cannot be
            written.
        """
        hello = Frame.build(
            TYPE_SERVER,
            "",
            SERVER_HELLO,
            information.encode(),
            message_id=message_id,
            source=information.client_id,
            first_acquirer=True,
        )
        self._demand(Input.INITIATE, "initiate")
        self.client_id = information.client_id
        self.information = information
        self._out.append(PREAMBLE + hello.raw)

    def accept(self, client_id: str, message_id: str = "") -> list[Event]:
        """Server: accept the client under this id; return the events in bytes that it sent early.

        :raises LocalProtocolError: if no client waits for the decision, or the id is empty.
        """
        if not client_id:
            raise LocalProtocolError("a client needs an id to be accepted (F30): generate one")
        reply = Frame.build(
            TYPE_SERVER, client_id, SERVER_ACCEPTED, message_id=message_id, first_acquirer=True
        )
        self._demand(Input.ACCEPT, "accept")
        self.client_id = client_id
        self._out.append(reply.raw)
        events: list[Event] = []
        self._work(b"", events)
        return events

    def refuse(self, code: int, message_id: str = "", address: str = "") -> list[Event]:
        """Server: refuse the client with a result code (401, 421, 482, 503; F32, F33) and close.

        :param address: the address of the server that serves clients instead, for ``Node-Address``;
            empty if unknown.
        :raises LocalProtocolError: if no client waits for the decision.
        """
        reply = refusal(code, message_id, address)
        self._demand(Input.REFUSE, "refuse")
        self._out.append(reply)
        events: list[Event] = []
        self._end("refused", events)
        return events

    def forget(self) -> None:
        """Server: drop the bytes that the client has sent, because it will be refused later."""
        self._decoder.clear()

    def send(self, frame: Frame) -> None:
        """Queue a message.

        A client remembers its pull request, to recognise the results.

        :raises LocalProtocolError: if nothing may be sent in the current state, if a pull request
            has no id or one that is pending, or if ``max_pending_pulls`` are pending.
        """
        if self._state != _OPEN:
            self._demand(Input.SEND, "send")
        if not self._server and frame.type == TYPE_PULL_REQUEST:
            self._pulls.add(frame)
        self._out.append(frame.raw)

    def send_bytes(self, data: bytes) -> None:
        """Queue whole frames that are already encoded, as a forwarding broker has them.

        :raises LocalProtocolError: if nothing may be sent in the current state.
        """
        if self._state != _OPEN:
            self._demand(Input.SEND, "send")
        self._out.append(data)
        if len(data) >= _LARGE_BYTES:
            self._has_large = True

    def ping(self) -> None:
        """Queue a ping (F37).

        :raises LocalProtocolError: if nothing may be sent in the current state.
        """
        self.send_bytes(PING_BYTES)

    def forget_pull(self, request_id: str) -> None:
        """Client: stop recognising the results of an abandoned pull."""
        self._pulls.forget(request_id)

    def close(self) -> list[Event]:
        """Close from this side; an open connection announces it with Terminate (F40).

        Does nothing on a closed connection.
        """
        events: list[Event] = []
        open_now = self._state == _OPEN or self._state == _AWAIT_ACCEPT
        if self._advance(Input.CLOSE) == int(Action.CLOSE):
            if open_now:
                self._out.append(Frame.build(TYPE_TERMINATE).raw)
            self._end("local", events)
        return events

    def reject(self, error: RemoteProtocolError) -> list[Event]:
        """Close because the peer broke a rule that the caller checks (a forged source, F42)."""
        events: list[Event] = []
        if self._state != _CLOSED:
            self._fault(error, events)
        return events

    def data_to_send(self) -> bytes:
        """Return all bytes queued since the last call, in order; empty if there are none."""
        out = self._out
        if not out:
            return b""
        self._out = []
        self._has_large = False
        return out[0] if len(out) == 1 else b"".join(out)

    def next_to_send(self) -> bytes:
        """Return the next portion of the queued bytes; empty if there are none.

        Large queued pieces are returned one by one, because joining them would copy.
        """
        out = self._out
        if not self._has_large or len(out) <= 1:
            return self.data_to_send()
        end = 0
        while end < len(out) and len(out[end]) < _LARGE_BYTES:
            end += 1
        end = max(end, 1)  # a large piece is sent alone, and joining one piece copies nothing
        self._out = out[end:]
        return b"".join(out[:end])

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Return when to call :meth:`on_deadline` if nothing is received before; None for never."""
        if self._state == _CLOSED:
            return None
        limits = self.limits
        if self._state != _OPEN:
            return self._started + limits.handshake_timeout_s
        return self._quiet_since + limits.ping_interval_s

    def on_deadline(self, now: float) -> list[Event]:
        """Queue a ping that is due at ``now``, or close if the peer is silent, or do nothing."""
        events: list[Event] = []
        due = self.next_deadline()
        if due is None or now < due:
            return events
        limits = self.limits
        if self._state != _OPEN:
            self._advance(Input.HANDSHAKE_EXPIRED)
            late = f"not connected within {limits.handshake_timeout_s:g} seconds"
            self._violate(AbuseError("handshake-timeout", late, ResultCode.REQUEST_TIMEOUT), events)
        elif self._pings < limits.max_missed_pings:
            self._advance(Input.SILENCE)
            # Counted from now, not from when it was due: our own delay is not the peer's silence.
            self._quiet_since = now
            self._pings += 1
            self._out.append(PING_BYTES)
        else:
            self._advance(Input.LIFELESS)
            silent = f"nothing received for {now - self._last_received:.1f} seconds"
            self._violate(
                RemoteProtocolError("ping-timeout", silent, ResultCode.REQUEST_TIMEOUT), events
            )
        return events

    def excuse_silence(self, now: float) -> None:
        """Ignore the peer's silence until ``now``: the program did not read the transport."""
        self._last_received = now
        self._pings = 0

    # -- the machine ----------------------------------------------------------------------------

    def _advance(self, item: int) -> int:
        """Change the state by the table; return the action."""
        cell = self._cells[self._state * WIDTH + item]
        self._state = cell & STATE_MASK
        return cell >> STATE_BITS

    def _demand(self, item: int, what: str) -> None:
        """Change the state by a request of the program, or refuse it without a change."""
        if self._advance(item) == int(Action.MISUSE):
            raise LocalProtocolError(f"cannot {what} in state {self.state.name}")

    def _check_decoder(self, events: list[Event]) -> None:
        error = self._decoder.error
        if error is not None and self._state != _CLOSED:
            self._fault(error, events)

    def _fault(self, error: RemoteProtocolError, events: list[Event]) -> None:
        self._advance(Input.FAULT)
        self._violate(error, events)

    def _violate(self, error: RemoteProtocolError, events: list[Event]) -> None:
        """End the connection because of a violation; tell the peer why, if it speaks the
        protocol."""
        self.error = error.with_traceback(None)  # a traceback would keep everything parsed
        told = farewell(error, self._server and not self.client_id)
        if told:
            self._out.append(told)
        events.append(ProtocolViolated(error))
        self._end("lifeless" if error.rule == "ping-timeout" else "violation", events)

    def _end(self, reason: str, events: list[Event]) -> None:
        assert self._state == _CLOSED, "only the table moves the state"
        self._decoder.clear()
        self._greeting = b""
        self._pulls.clear()
        events.append(ConnectionClosed(reason))
