"""WebSocket: the byte stream of another door's protocol, in binary messages.

Once the upgrade is accepted, :class:`WebSocketLayer` is between the bytes of the connection and a
session of the inner door: each received message is a chunk of the inner stream, and the output of
the inner session is sent in binary messages.  With the JSON subprotocol, messages are texts, one
for each line of the inner session.  Compression is not offered.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any, Final, final

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Message, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import generate_accept_token

from tmqp_server.doors.http.json_session import JsonSession
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.messages import BadRequest, HttpRequest
from tmqp_server.doors.port import DoorSession
from tmqp_server.engine.commands import Command

__all__ = ["WebSocketLayer", "offered_protocols", "upgrade_headers"]

_VERSION: Final = b"13"
_KEY_BYTES: Final = 16
#: Codes for which a session that speaks JSON may have better ones.
_OF_THE_SERVER: Final = (CloseReason.NORMAL_CLOSURE, CloseReason.GOING_AWAY)
#: A larger piece of the inner stream goes out in several messages.
_PIECE_BYTES: Final = 65_536


def _tokens(request: HttpRequest, name: bytes) -> list[str]:
    found: list[str] = []
    for key, value in request.headers:
        if key.lower() == name:
            found += [each.strip() for each in value.decode("latin-1").split(",")]
    return [each for each in found if each]


def offered_protocols(request: HttpRequest) -> list[str]:
    """The subprotocols that a WebSocket client offers.

    :raises BadRequest: 426 when it does not ask for a WebSocket of version 13, 400 when its key is
        invalid.
    """
    upgrades = [each.lower() for each in _tokens(request, b"upgrade")]
    connection = [each.lower() for each in _tokens(request, b"connection")]
    if "websocket" not in upgrades or "upgrade" not in connection:
        raise BadRequest(426, "this resource is a WebSocket: send Upgrade: websocket")
    if request.header(b"sec-websocket-version") != _VERSION:
        raise BadRequest(426, "the version of the WebSocket protocol must be 13")
    try:
        key = base64.b64decode(request.header(b"sec-websocket-key") or b"", validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _KEY_BYTES:
        raise BadRequest(400, "Sec-WebSocket-Key must be 16 bytes in base64")
    return _tokens(request, b"sec-websocket-protocol")


def upgrade_headers(request: HttpRequest, protocol: str) -> list[tuple[bytes, bytes]]:
    """The fields that accept an upgrade."""
    key = request.header(b"sec-websocket-key") or b""
    return [
        (b"Upgrade", b"websocket"),
        (b"Connection", b"Upgrade"),
        (b"Sec-WebSocket-Accept", generate_accept_token(key)),
        (b"Sec-WebSocket-Protocol", protocol.encode("ascii")),
    ]


@final
class WebSocketLayer:
    """One WebSocket connection around an inner session.

    Attributes: ``inner``, the inner session; ``reason``, why the WebSocket has ended, empty while
    it is open.
    """

    def __init__(self, inner: DoorSession, limits: HttpLimits, now: float) -> None:
        self.inner = inner
        self.reason = ""
        #: The inner session if it speaks JSON.
        self._lines = inner if isinstance(inner, JsonSession) else None
        self._limits = limits
        self._machine = Connection(ConnectionType.SERVER)
        self._out: list[bytes] = []
        self._message = bytearray()
        self._fragments = 0
        self._interval = limits.websocket_ping_interval_s
        #: When a silent peer is pinged, or given up.
        self._silence_due = now + self._interval
        self._pinged = False
        self._closing_due = math.inf

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Take bytes of the connection."""
        if self.reason:
            return ()
        self._silence_due = now + self._interval
        self._pinged = False
        commands: list[Command] = []
        self._machine.receive_data(data)
        for event in self._machine.events():
            self._heard(event, commands, now)
            if self._is_over():
                break
        self.pump(now)
        return commands

    def _is_over(self) -> bool:
        return self.reason != ""

    def _heard(self, event: object, commands: list[Command], now: float) -> None:
        if isinstance(event, Ping):
            if self._machine.state is ConnectionState.OPEN:
                self._out.append(self._machine.send(Pong(payload=event.payload)))
        elif isinstance(event, CloseConnection):
            commands += self._heard_close(event, now)
        elif isinstance(event, Message) and self._closing_due == math.inf:
            commands += self._message_part(event, now)

    def _heard_close(self, event: CloseConnection, now: float) -> Sequence[Command]:
        """The peer closes, answers our close, or has violated the protocol."""
        state = self._machine.state
        if state is ConnectionState.OPEN:
            return self.close(event.code, "the WebSocket protocol was violated", now)
        if state is ConnectionState.REMOTE_CLOSING:
            self._out.append(self._machine.send(CloseConnection(code=event.code)))
        return self._end("the peer closed the WebSocket", now)

    def _message_part(self, event: Message[Any], now: float) -> Sequence[Command]:
        if isinstance(event, TextMessage) != (self._lines is not None):
            kind = "binary" if self._lines is None else "text"
            return self.close(CloseReason.UNSUPPORTED_DATA, f"messages must be {kind}", now)
        self._message += event.data.encode() if isinstance(event, TextMessage) else event.data
        if len(self._message) > self._limits.max_websocket_message_bytes:
            return self.close(CloseReason.MESSAGE_TOO_BIG, "the message is too large", now)
        if event.frame_finished:
            self._fragments += 1
            if self._fragments > self._limits.max_websocket_fragments:
                return self.close(CloseReason.POLICY_VIOLATION, "too many fragments", now)
        if not event.message_finished:
            return ()
        data = bytes(self._message)
        self._message.clear()
        self._fragments = 0
        return self.inner.receive(data, now) if data and not self.inner.closed else ()

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The transport has ended."""
        return self._end("the peer closed the connection", now)

    def next_deadline(self) -> float:
        """When :meth:`on_deadline` must be called."""
        if self._closing_due < math.inf:
            return self._closing_due
        inner = None if self.inner.closed else self.inner.next_deadline()
        return self._silence_due if inner is None else min(self._silence_due, inner)

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Send a ping, or give up the peer."""
        if self.reason:
            return ()
        if self._closing_due <= now:
            return self._end("the WebSocket was closed", now)
        commands: list[Command] = []
        inner = None if self.inner.closed else self.inner.next_deadline()
        if inner is not None and inner <= now:
            commands += self.inner.on_deadline(now)
        if self._closing_due == math.inf and self._silence_due <= now:
            if self._pinged:
                commands += self._end("no answer to a WebSocket ping", now)
                return commands
            self._pinged = True
            self._silence_due = now + self._interval
            self._out.append(self._machine.send(Ping(payload=b"")))
        self.pump(now)
        return commands

    # -- bytes out ------------------------------------------------------------------------------

    def pump(self, now: float) -> None:
        """Take the inner session's output; if the inner session is closed, close the WebSocket."""
        if self._closing_due < math.inf or self.reason:
            return
        self._gather()
        if self.inner.closed:
            self._say_goodbye(CloseReason.NORMAL_CLOSURE, self.inner.close_reason, now)

    def _gather(self) -> None:
        while data := self.inner.next_to_send():
            if self._lines is not None:
                for each in data.decode().split("\n")[:-1]:
                    self._out.append(self._machine.send(TextMessage(data=each)))
                continue
            for at in range(0, len(data), _PIECE_BYTES):
                piece = data[at : at + _PIECE_BYTES]
                self._out.append(self._machine.send(BytesMessage(data=piece)))

    def take(self) -> bytes:
        """The bytes to send since the last call."""
        if self._closing_due == math.inf and not self.reason:
            self._gather()
        data = b"".join(self._out)
        self._out.clear()
        return data

    def waiting_bytes(self) -> int:
        """About how many bytes wait to be sent."""
        return sum([len(each) for each in self._out]) + self.inner.outbound_bytes

    def held_bytes(self) -> int:
        """About how many bytes of memory the peer's unfinished message takes."""
        return len(self._message) + self.inner.held_bytes()

    # -- ending ---------------------------------------------------------------------------------

    def close(self, code: int, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, after the output of the inner session."""
        commands = [] if self.inner.closed else list(self.inner.close(reason, now))
        if self._closing_due == math.inf:
            self._gather()
        self._say_goodbye(code, reason, now)
        return commands

    def _say_goodbye(self, code: int, reason: str, now: float) -> None:
        if self._lines is not None and code in _OF_THE_SERVER:
            code = self._lines.close_code
        if self._closing_due == math.inf:
            self._closing_due = now + self._limits.websocket_close_timeout_s
            if self._machine.state is ConnectionState.OPEN:
                text = reason.encode("utf-8", "replace")[:120].decode("utf-8", "ignore")
                self._out.append(
                    self._machine.send(CloseConnection(code=code, reason=text or None))
                )

    def _end(self, reason: str, now: float) -> Sequence[Command]:
        commands = [] if self.inner.closed else list(self.inner.receive_eof(now))
        self.reason = self.inner.close_reason or reason
        return commands
