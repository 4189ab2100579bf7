"""Names the protocol of a peer that does not speak TMQP, by its first bytes.

If an operator reads "the peer sent an HTTP request", the wrong port is obvious.
"""

from __future__ import annotations

__all__ = ["FirstBytes", "name_greeting"]

_HTTP_METHODS = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ")
_KNOWN = (
    (b"PRI * HTTP/2", "an HTTP/2 preface"),
    (b"CONNECT {", "a NATS client's greeting"),
    (b"CONNECT\n", "a STOMP client's greeting"),
    (b"CONNECT\r\n", "a STOMP client's greeting"),
    (b"CONNECT ", "an HTTP proxy request"),
    (b"STOMP", "a STOMP client's greeting"),
    (b"SSH-", "an SSH banner"),
    (b"AMQP", "an AMQP greeting"),
    (b"  V1", "an NSQ client's greeting"),
    (b"  V2", "an NSQ client's greeting"),
    (b"INFO {", "a NATS server's greeting"),
    (b"*1\r\n", "a Redis command"),
    (b"\xff\x00\x00\x00", "a ZeroMQ greeting"),
    (b"TMQ", "another version of TMQP"),
)
_SHOWN_BYTES = 16
#: The number of bytes that identify a greeting, and the most bytes kept of each earlier chunk.
_ENOUGH_BYTES = 8
_CHUNK_BYTES = 32


def name_greeting(data: bytes) -> str:
    """Say in a few words what the first bytes of a connection look like.

    :param data: the received bytes, at least one.
    """
    for method in _HTTP_METHODS:
        if data.startswith(method):
            return "an HTTP request"
    if len(data) > 2 and data[0] == 0x16 and data[1] == 0x03:
        return "a TLS handshake"
    if len(data) > 1 and data[0] == 0x10 and b"MQTT" in data[:16]:
        return "an MQTT greeting"
    for prefix, name in _KNOWN:
        if data.startswith(prefix):
            return name
    return f"{data[:_SHOWN_BYTES]!r}"


class FirstBytes:
    """The first bytes of a peer, kept to name its protocol if it is not TMQP.

    Attribute to read: ``data``.
    """

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = b""

    def take(self, data: bytes) -> None:
        """Add received bytes."""
        if len(self.data) < _ENOUGH_BYTES:
            self.data += data[:_CHUNK_BYTES]

    def sent(self) -> str:
        """Say in a sentence what the peer sent."""
        return f"the peer sent {name_greeting(self.data)}"
