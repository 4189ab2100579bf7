"""CURVE for tests: keys that are always the same, two sides that talk, and a peer by PyNaCl alone.

:class:`RawClient` and :class:`RawServer` are written from the RFC and share no code with ours: what
they and ours agree on is right.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from nacl.bindings import crypto_scalarmult_base
from nacl.public import Box, PrivateKey, PublicKey
from nacl.secret import SecretBox

from tmqp_wires.zmtp import CurveKeys, ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.boxes import Cryptography
from tmqp_wires.zmtp.config import CURVE
from tmqp_wires.zmtp.sodium import sodium

__all__ = [
    "CLIENT_SECRET",
    "GREETING",
    "SERVER_PUBLIC",
    "SERVER_SECRET",
    "Drawn",
    "RawClient",
    "RawServer",
    "curve_client",
    "curve_server",
    "introduced",
]

SERVER_SECRET: Final = bytes(range(1, 33))
CLIENT_SECRET: Final = bytes(range(101, 133))
SERVER_PUBLIC: Final = crypto_scalarmult_base(SERVER_SECRET)
#: What libzmq sends: 3.1, CURVE, and no sign of being a server on either side.
GREETING: Final = bytes.fromhex("ff00000000000000017f0301") + b"CURVE".ljust(52, b"\0")


class Drawn:
    """The cryptography of PyNaCl with random bytes that are the same every time."""

    def __init__(self, seed: bytes) -> None:
        self._inner = sodium()
        self._seed = seed
        self._count = 0
        self.public_key = self._inner.public_key
        self.shared_key = self._inner.shared_key
        self.seal = self._inner.seal
        self.open = self._inner.open

    def random(self, size: int) -> bytes:
        """The next ones."""
        self._count += 1
        return hashlib.shake_128(self._seed + bytes((self._count,))).digest(size)


def curve_server(cryptography: Cryptography | None = None, **changes: Any) -> ZmtpConnection:
    """Our server's side, which may be anything."""
    keys = CurveKeys(cryptography=cryptography or sodium(), secret_key=SERVER_SECRET)
    return ZmtpConnection(
        ZmtpConfig(**{"as_server": True, "mechanism": CURVE, "keys": keys, **changes}), 0.0
    )


def curve_client(
    socket_type: str = "PUSH",
    cryptography: Cryptography | None = None,
    server_key: bytes = SERVER_PUBLIC,
    **changes: Any,
) -> ZmtpConnection:
    """Our client's side."""
    keys = CurveKeys(
        cryptography=cryptography or sodium(), secret_key=CLIENT_SECRET, server_key=server_key
    )
    config = ZmtpConfig(socket_type=socket_type, mechanism=CURVE, keys=keys, **changes)
    return ZmtpConnection(config, 0.0)


def introduced(socket_type: bytes = b"PUSH") -> bytes:
    """The metadata of a socket of this type."""
    return b"\x0bSocket-Type" + len(socket_type).to_bytes(4, "big") + socket_type


def _command(name: bytes, data: bytes) -> bytes:
    body = bytes((len(name),)) + name + data
    if len(body) < 256:
        return bytes((4, len(body))) + body
    return b"\x06" + len(body).to_bytes(8, "big") + body


def _message(number: int, prefix: bytes, box: Box, text: bytes) -> bytes:
    short = number.to_bytes(8, "big")
    sealed = box.encrypt(text, prefix + short).ciphertext
    body = b"\x07MESSAGE" + short + sealed
    if len(body) < 256:
        return bytes((0, len(body))) + body
    return b"\x02" + len(body).to_bytes(8, "big") + body


class RawClient:
    """The client's side, step by step, of secret keys that the test chooses."""

    def __init__(
        self, transient: bytes, secret: bytes = CLIENT_SECRET, server: bytes = SERVER_PUBLIC
    ) -> None:
        self.transient = PrivateKey(transient)
        self.secret = PrivateKey(secret)
        self.server = PublicKey(server)
        self.cookie = b""
        self.box: Box | None = None

    def hello(self, number: int = 1, **changes: bytes) -> bytes:
        """HELLO, parts of it changed."""
        short = number.to_bytes(8, "big")
        box = Box(self.transient, self.server)
        text = changes.get("text", bytes(64))
        signature = box.encrypt(text, b"CurveZMQHELLO---" + short).ciphertext
        version, padding = changes.get("version", b"\1\0"), changes.get("padding", bytes(72))
        public = changes.get("public", bytes(self.transient.public_key))
        return _command(b"HELLO", version + padding + public + short + signature)

    def read_welcome(self, frame: bytes) -> None:
        """WELCOME, one frame."""
        assert frame[:10] == b"\x04\xa8\x07WELCOME"
        box = Box(self.transient, self.server)
        text = box.decrypt(frame[26:], b"WELCOME-" + frame[10:26])
        assert len(text) == 128
        self.box = Box(self.transient, PublicKey(text[:32]))
        self.cookie = text[32:]
        self._server_transient = PublicKey(text[:32])

    def initiate(self, metadata: bytes | None = None, number: int = 2, **changes: bytes) -> bytes:
        """INITIATE, parts of it changed."""
        assert self.box is not None
        nonce = bytes(range(16))
        vouched = changes.get("vouched", bytes(self.transient.public_key) + bytes(self.server))
        vouch = Box(self.secret, self._server_transient).encrypt(vouched, b"VOUCH---" + nonce)
        public = changes.get("public", bytes(self.secret.public_key))
        text = public + nonce + vouch.ciphertext + (introduced() if metadata is None else metadata)
        short = number.to_bytes(8, "big")
        sealed = self.box.encrypt(text, b"CurveZMQINITIATE" + short).ciphertext
        return _command(b"INITIATE", changes.get("cookie", self.cookie) + short + sealed)

    def read_ready(self, frame: bytes) -> bytes:
        """READY, one frame; its metadata."""
        assert self.box is not None
        assert frame[2:8] == b"\x05READY"
        return self.box.decrypt(frame[16:], b"CurveZMQREADY---" + frame[8:16])

    def message(self, number: int, text: bytes) -> bytes:
        """A MESSAGE: flags and what it holds."""
        assert self.box is not None
        return _message(number, b"CurveZMQMESSAGEC", self.box, text)

    def read_message(self, frame: bytes) -> tuple[int, bytes]:
        """A MESSAGE in one short frame: its number, and what is in it."""
        assert self.box is not None
        assert frame[0] == 0, "libzmq reads no MESSAGE that is a command"
        assert frame[2:10] == b"\x07MESSAGE"
        number = frame[10:18]
        text = self.box.decrypt(frame[18:], b"CurveZMQMESSAGES" + number)
        return int.from_bytes(number, "big"), text


class RawServer:
    """The server's side, step by step."""

    def __init__(self, transient: bytes, cookie_key: bytes) -> None:
        self.secret = PrivateKey(SERVER_SECRET)
        self.transient = PrivateKey(transient)
        self.cookie_key = cookie_key
        self.client = b""

    def read_hello(self, frame: bytes) -> None:
        """HELLO, one frame."""
        assert frame[:10] == b"\x04\xc8\x05HELLO\x01\x00"
        assert frame[10:82] == bytes(72)
        self.client = frame[82:114]
        box = Box(self.secret, PublicKey(self.client))
        assert box.decrypt(frame[122:], b"CurveZMQHELLO---" + frame[114:122]) == bytes(64)

    def welcome(self, nonce: bytes = bytes(16), cookie_nonce: bytes = bytes(16)) -> bytes:
        """WELCOME."""
        kept = self.client + bytes(self.transient)
        sealed = SecretBox(self.cookie_key).encrypt(kept, b"COOKIE--" + cookie_nonce).ciphertext
        text = bytes(self.transient.public_key) + cookie_nonce + sealed
        box = Box(self.secret, PublicKey(self.client))
        return _command(b"WELCOME", nonce + box.encrypt(text, b"WELCOME-" + nonce).ciphertext)

    def read_initiate(self, frame: bytes) -> tuple[bytes, bytes]:
        """INITIATE, one long frame: the client's key, and its metadata."""
        assert frame[9:18] == b"\x08INITIATE"
        cookie, short, sealed = frame[18:114], frame[114:122], frame[122:]
        kept = SecretBox(self.cookie_key).decrypt(cookie[16:], b"COOKIE--" + cookie[:16])
        assert kept == self.client + bytes(self.transient)
        box = Box(self.transient, PublicKey(self.client))
        text = box.decrypt(sealed, b"CurveZMQINITIATE" + short)
        vouch = Box(self.transient, PublicKey(text[:32]))
        vouched = vouch.decrypt(text[48:128], b"VOUCH---" + text[32:48])
        assert vouched == self.client + bytes(self.secret.public_key)
        return text[:32], text[128:]

    def ready(self, metadata: bytes, number: int = 1) -> bytes:
        """READY."""
        short = number.to_bytes(8, "big")
        box = Box(self.transient, PublicKey(self.client))
        return _command(b"READY", short + box.encrypt(metadata, b"CurveZMQREADY---" + short)[24:])

    def message(self, number: int, text: bytes) -> bytes:
        """A MESSAGE."""
        box = Box(self.transient, PublicKey(self.client))
        return _message(number, b"CurveZMQMESSAGES", box, text)
