"""CURVE for the fuzzer: boxes that anybody can open, so that it comes behind the handshake."""

from __future__ import annotations

from typing import Final

from tmqp.testing import Seeded
from tmqp_wires.zmtp import CurveKeys, ZmtpConfig
from tmqp_wires.zmtp.config import CURVE
from tmqp_wires.zmtp.frames import command_frame, message_frames, metadata_bytes

__all__ = ["SIDES", "curve_says"]

_SEAL: Final = bytes(16)
_SECRET: Final = b"s" * 32
_PUBLIC: Final = b"p" * 32
_SHORT: Final = b"c" * 32
_GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(52, b"\0")


class _OpenBoxes:
    """A box is sixteen zeros and the text; see ``tmqp_wires.zmtp.boxes.Cryptography``."""

    def random(self, size: int) -> bytes:
        return bytes(range(1, size + 1))

    def public_key(self, secret: bytes) -> bytes:
        return _PUBLIC

    def shared_key(self, public: bytes, secret: bytes) -> bytes:
        return bytes(32)

    def seal(self, text: bytes, nonce: bytes, key: bytes) -> bytes:
        return _SEAL + text

    def open(self, box: bytes, nonce: bytes, key: bytes) -> bytes:
        if box[:16] != _SEAL:
            raise ValueError("sealed otherwise")
        return box[16:]


def _side(socket_type: str, server_key: bytes) -> ZmtpConfig:
    return ZmtpConfig(
        socket_type=socket_type,
        as_server=not server_key,
        mechanism=CURVE,
        keys=CurveKeys(cryptography=_OpenBoxes(), secret_key=_SECRET, server_key=server_key),
        max_part_bytes=100,
        max_message_bytes=300,
        max_parts=5,
        max_command_bytes=200,
    )


#: A server and a client, with limits that are soon reached.
SIDES: Final = (_side("", b""), _side("XPUB", _PUBLIC))


def curve_says(draw: Seeded) -> bytes:
    """What one of the two sides says: a handshake, then boxes."""
    said = [_GREETING]
    ready = metadata_bytes([("Socket-Type", b"SUB")])
    if draw.one_in(3):
        said.append(command_frame(b"HELLO", b"\1\0" + bytes(72) + _SHORT + _number(1) + bytes(80)))
        cookie = bytes(16) + _SEAL + _SHORT + _SECRET
        vouch = _SEAL + _SHORT + _PUBLIC
        box = _SEAL + _PUBLIC + bytes(16) + vouch + ready
        said.append(command_frame(b"INITIATE", cookie + _number(2) + box))
    else:
        said.append(command_frame(b"WELCOME", bytes(16) + _SEAL + _PUBLIC + bytes(96)))
        said.append(command_frame(b"READY", _number(1) + _SEAL + ready))
    number = 2
    for _ in range(draw.below(6)):
        number += 0 if draw.one_in(12) else 1
        data = draw.some_bytes(draw.below(110))
        names = (b"\x09SUBSCRIBE", b"\x06CANCEL", b"\x04PING", b"\x04PONG", b"\x05ERROR", b"")
        flags = 0 if draw.one_in(20) else draw.below(4)
        text = names[draw.below(6)] + data[:18] if flags & 2 else data
        body = b"\x07MESSAGE" + _number(number) + _SEAL + bytes((flags,)) + text
        said.append(message_frames((body,)))
    return b"".join(said)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
