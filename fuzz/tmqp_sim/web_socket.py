"""WebSockets: a client's end of a link whose bytes travel in binary messages.

A client of TMQP does not know that it speaks through one.  Frames are written here and not by
wsproto, which draws the keys of their masks from the operating system; what the server sends is
read by wsproto.
"""

from __future__ import annotations

import base64
from random import Random
from typing import Any, Final, cast

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping
from wsproto.utilities import generate_accept_token

from tmqp_sim.host import WEB_SOCKET
from tmqp_sim.network import Broken, End, Link
from tmqp_sim.world import Violation

__all__ = ["speak_through_web_socket"]

#: What a frame is for.
_GOES_ON: Final = 0x0
_BINARY: Final = 0x2
_CLOSE: Final = 0x8
_PING: Final = 0x9
_PONG: Final = 0xA
_LAST: Final = 0x80
_MASKED: Final = 0x80
#: Longer payloads have two more bytes for their length, or eight.
_SHORT: Final = 125
_MEDIUM: Final = 65_535
#: So many messages in a hundred are cut into frames; there may be a ping between two of them.
_CUT: Final = 30
_PINGED: Final = 30
_END_OF_HEAD: Final = b"\r\n\r\n"


def speak_through_web_socket(link: Link, name: str) -> End:
    """Let the client of a new link come through a WebSocket; returns its end."""
    link.host = f"{WEB_SOCKET}{name} {link.number}"
    end = _SocketEnd(link, link.world.child(f"{name} {link.number} socket"))
    link.lead(end)
    end.ask()
    link.world.mark("client came by WebSocket")
    return end


class _SocketEnd(End):
    """The client's end."""

    __slots__ = ("_accepted", "_chance", "_ended", "_head", "_key", "_machine", "_unsent")

    def __init__(self, link: Link, chance: Random) -> None:
        super().__init__(link)
        self._chance = chance
        self._key = base64.b64encode(chance.randbytes(16))
        self._machine = Connection(ConnectionType.CLIENT)
        #: The answer to the upgrade, until all of it has come.
        self._head = b""
        self._accepted = False
        #: The server has closed the WebSocket, or wants none.
        self._ended = False
        #: What was written for the client, or by this end, and not taken by the network.
        self._unsent = b""

    # -- out ------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Ask for the upgrade."""
        lines = (
            b"GET /api/v1/ws HTTP/1.1",
            b"Host: sim",
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Protocol: tmqp",
            b"Sec-WebSocket-Key: " + self._key,
        )
        self._write(b"\r\n".join(lines) + _END_OF_HEAD)

    def send(self, data: bytes) -> int:
        """Send a message, unless there is no room for it at all."""
        if self.closed or self.link.gone:
            raise Broken("the connection is closed")
        if self._unsent or not self._accepted or self._ended:
            return 0
        chance = self._chance
        kind = _BINARY
        rest = data
        while len(rest) > 1 and chance.randrange(100) < _CUT:
            cut = chance.randrange(1, len(rest))
            self._frame(kind, rest[:cut])
            kind, rest = _GOES_ON, rest[cut:]
            if chance.randrange(100) < _PINGED:
                self._frame(_PING | _LAST, b"?")
        self._frame(kind | _LAST, rest)
        return len(data)

    def _frame(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        head = bytearray((kind,))
        if size <= _SHORT:
            head.append(_MASKED | size)
        elif size <= _MEDIUM:
            head.append(_MASKED | (_SHORT + 1))
            head += size.to_bytes(2, "big")
        else:
            head.append(_MASKED | (_SHORT + 2))
            head += size.to_bytes(8, "big")
        mask = self._chance.randbytes(4)
        whole = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        masked = (int.from_bytes(payload, "big") ^ whole).to_bytes(size, "big")
        self._write(bytes(head) + mask + masked)

    def _write(self, data: bytes) -> None:
        self._unsent += data
        self._flush()

    def _flush(self) -> None:
        while self._unsent and not self.closed and not self.link.gone:
            sent = super().send(self._unsent)
            if not sent:
                break
            self._unsent = self._unsent[sent:]

    def writable(self) -> None:
        """There is room: for what is written already, before the client is notified of it."""
        self._flush()
        if not self._unsent:
            super().writable()

    def close(self) -> None:
        """Send nothing more and read nothing more."""
        if not self.closed and self._accepted and not self._ended:
            self._frame(_CLOSE | _LAST, (1000).to_bytes(2, "big"))
        super().close()

    # -- in -------------------------------------------------------------------------------------

    def read(self) -> bytes | None:
        """What has come in messages."""
        while not self._ended:
            data = super().read()
            if not data:
                return data
            if not self._accepted:
                data = self._answered(data)
            if data and (found := self._messages(data)):
                return found
        return b""

    def _answered(self, data: bytes) -> bytes:
        """Read the answer to the upgrade; returns what came behind it."""
        head, end, rest = (self._head + data).partition(_END_OF_HEAD)
        if not end:
            self._head = head
            return b""
        status, *fields = head.split(b"\r\n")
        if not status.startswith(b"HTTP/1.1 101 "):
            self._ended = True  # it was suspended for too long, or there is no room for it
            return b""
        token = b"sec-websocket-accept: " + generate_accept_token(self._key)
        if token.lower() not in [each.lower() for each in fields]:
            raise Violation(
                "WebSocket", f"link {self.link.number}: the upgrade is answered {head!r}"
            )
        self._accepted = True
        self.link.world.after(0.0, self.writable)
        return rest

    def _messages(self, data: bytes) -> bytes:
        found = b""
        self._machine.receive_data(data)
        for event in self._machine.events():
            if isinstance(event, BytesMessage):
                # It says bytes and is a bytearray, which compiled code would refuse.
                found += bytes(cast("Any", event).data)
            elif isinstance(event, Ping):
                self.link.world.mark("WebSocket pinged")
                self._frame(_PONG | _LAST, bytes(cast("Any", event).payload))
            elif isinstance(event, CloseConnection):
                self._closed(int(event.code))
                break
        return found

    def _closed(self, code: int) -> None:
        """The server closes: answer that.

        :raises Violation: when it says that the client has broken the protocol.
        """
        self._ended = True
        if code not in (1000, 1001):
            raise Violation("WebSocket", f"link {self.link.number}: it is closed with {code}")
        self.link.world.mark("WebSocket closed by the server")
        self._frame(_CLOSE | _LAST, code.to_bytes(2, "big"))
