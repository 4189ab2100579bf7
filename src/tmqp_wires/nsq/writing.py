"""Encodes the frames of a server and the commands of a client.

Nothing is checked here: the caller must pass valid names, ids and sizes (``names``, N17 to N19).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final

__all__ = [
    "CLOSE_WAIT",
    "CLS",
    "FRAME_ERROR",
    "FRAME_MESSAGE",
    "FRAME_RESPONSE",
    "HEARTBEAT",
    "MAGIC",
    "MESSAGE_HEAD_BYTES",
    "MESSAGE_ID_AT",
    "MESSAGE_TIME_AT",
    "NOP",
    "OK",
    "auth",
    "dpub",
    "error_frame",
    "fin",
    "identify",
    "message_frame",
    "mpub",
    "pub",
    "rdy",
    "req",
    "response_frame",
    "retried",
    "sub",
    "touch",
]

#: What a client sends first (N1).
MAGIC: Final = b"  V2"
FRAME_RESPONSE: Final = 0
FRAME_ERROR: Final = 1
FRAME_MESSAGE: Final = 2
#: Bytes of a message frame before the body: size, type, timestamp, attempts, id.
MESSAGE_HEAD_BYTES: Final = 34
#: Where its time, in 8 bytes, and its id are in it.
MESSAGE_TIME_AT: Final = 8
MESSAGE_ID_AT: Final = 18
_MAX_ATTEMPTS: Final = 65_535

_INT32: Final = Struct(">i")
_FRAME: Final = Struct(">ii")
_MESSAGE: Final = Struct(">iiqH16s")


def response_frame(data: bytes) -> bytes:
    """A response (N5)."""
    return _FRAME.pack(4 + len(data), FRAME_RESPONSE) + data


def error_frame(text: bytes) -> bytes:
    """An error: its word, and what is wrong."""
    return _FRAME.pack(4 + len(text), FRAME_ERROR) + text


def message_frame(timestamp_ns: int, attempts: int, message_id: bytes, body: bytes) -> bytes:
    """A message (N14)."""
    size = MESSAGE_HEAD_BYTES - 4 + len(body)
    return _MESSAGE.pack(size, FRAME_MESSAGE, timestamp_ns, attempts, message_id) + body


def retried(frame: bytes, attempts: int, message_id: bytes = b"") -> bytes:
    """A message frame with another number of attempts and, if given, another id.

    The number stops at 65,535, so that a client that gives up after some attempts does not start
    over.
    """
    number = min(attempts, _MAX_ATTEMPTS).to_bytes(2, "big")
    if message_id:
        return frame[:16] + number + message_id + frame[MESSAGE_HEAD_BYTES:]
    return frame[:16] + number + frame[18:]


OK: Final = response_frame(b"OK")
HEARTBEAT: Final = response_frame(b"_heartbeat_")
CLOSE_WAIT: Final = response_frame(b"CLOSE_WAIT")

NOP: Final = b"NOP\n"
CLS: Final = b"CLS\n"


def identify(fields: Mapping[str, object]) -> bytes:
    """IDENTIFY with these keys (N26)."""
    body = json.dumps(dict(fields), separators=(",", ":")).encode()
    return b"IDENTIFY\n" + _INT32.pack(len(body)) + body


def auth(secret: bytes) -> bytes:
    """AUTH (N45)."""
    return b"AUTH\n" + _INT32.pack(len(secret)) + secret


def pub(topic: bytes, body: bytes) -> bytes:
    """PUB (N55)."""
    return b"".join((b"PUB ", topic, b"\n", _INT32.pack(len(body)), body))


def dpub(topic: bytes, delay_ms: int, body: bytes) -> bytes:
    """DPUB (N62)."""
    head = b"DPUB %s %d\n" % (topic, delay_ms)
    return b"".join((head, _INT32.pack(len(body)), body))


def mpub(topic: bytes, bodies: Sequence[bytes]) -> bytes:
    """MPUB (N57)."""
    parts: list[bytes] = []
    for body in bodies:
        parts.append(_INT32.pack(len(body)))
        parts.append(body)
    contents = b"".join(parts)
    head = _FRAME.pack(4 + len(contents), len(bodies))
    return b"".join((b"MPUB ", topic, b"\n", head, contents))


def sub(topic: bytes, channel: bytes) -> bytes:
    """SUB (N75)."""
    return b"SUB %s %s\n" % (topic, channel)


def rdy(count: int) -> bytes:
    """RDY (N77)."""
    return b"RDY %d\n" % count


def fin(message_id: bytes) -> bytes:
    """FIN (N85)."""
    return b"FIN %s\n" % message_id


def req(message_id: bytes, delay_ms: int) -> bytes:
    """REQ (N85)."""
    return b"REQ %s %d\n" % (message_id, delay_ms)


def touch(message_id: bytes) -> bytes:
    """TOUCH (N85)."""
    return b"TOUCH %s\n" % message_id
