"""CURVE (ZeroMQ RFC 26): both sides authenticate by keys, and everything after that is encrypted.

Theory of operation.  Each side has a permanent pair of keys (C of the client, S of the server) and
generates another for this connection (C', S').  The client knows S beforehand.

    HELLO     C', and a box of zeros from C' to S: the client knows S
    WELCOME   a box from S to C': S', and the cookie
    INITIATE  the cookie; in a box from C' to S' are C, the metadata, and the *vouch*, a box from C
              to S' that holds C' and S: the client has the secret key of C
    READY     a box from S' to C': the server's metadata

Between WELCOME and INITIATE, the server keeps neither anything of the client nor its own S': they
are in the cookie, encrypted with a key that the server generates for it and forgets after a minute,
or as soon as the cookie comes back.  So an attacker who learns S's secret later cannot decrypt
recorded traffic.

The numbers of each side's boxes increase, from HELLO to the last MESSAGE.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from tmqp_wires.zmtp.boxes import NONCE_BYTES, SEAL_BYTES, Cryptography, CurveTraffic
from tmqp_wires.zmtp.frames import command_frame
from tmqp_wires.zmtp.keys import KEY_BYTES
from tmqp_wires.zmtp.mechanisms import FOR_EVER, HEARD, NOTHING, SPEAK, Mechanism, unexpected

__all__ = ["COOKIE_S", "CurveClient", "CurveKeys", "CurveServer"]

#: For how many seconds the key of a cookie is kept.
COOKIE_S: Final = 60.0
_VERSION: Final = b"\x01\x00"
#: Padding of HELLO, so that no answer is larger than the request (the sender's address may be
#: forged).
_PADDING: Final = bytes(72)
_ZEROS: Final = bytes(64)
_LONG_NONCE_BYTES: Final = 16
_COOKIE_BYTES: Final = _LONG_NONCE_BYTES + 2 * KEY_BYTES + SEAL_BYTES
_VOUCH_BYTES: Final = 2 * KEY_BYTES + SEAL_BYTES
#: The bytes of commands after their names; of INITIATE and READY without metadata.
_HELLO_BYTES: Final = 2 + len(_PADDING) + KEY_BYTES + NONCE_BYTES + len(_ZEROS) + SEAL_BYTES
_WELCOME_BYTES: Final = _LONG_NONCE_BYTES + KEY_BYTES + _COOKIE_BYTES + SEAL_BYTES
_IN_INITIATE_BYTES: Final = KEY_BYTES + _LONG_NONCE_BYTES + _VOUCH_BYTES
_INITIATE_BYTES: Final = _COOKIE_BYTES + NONCE_BYTES + _IN_INITIATE_BYTES + SEAL_BYTES
_READY_BYTES: Final = NONCE_BYTES + SEAL_BYTES
_NAME_BYTES: Final = 1
#: The beginnings of nonces.
_HELLO: Final = b"CurveZMQHELLO---"
_INITIATE: Final = b"CurveZMQINITIATE"
_READY: Final = b"CurveZMQREADY---"
_WELCOME: Final = b"WELCOME-"
_COOKIE: Final = b"COOKIE--"
_VOUCH: Final = b"VOUCH---"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveKeys:
    """The keys of one side.

    ``secret_key`` is its own permanent one.  ``server_key`` is the public key of the server to
    which a client connects; a server has none.

    :raises ValueError: for a key that does not have 32 bytes.
    """

    cryptography: Cryptography = field(repr=False)
    secret_key: bytes = field(repr=False)
    server_key: bytes = b""

    def __post_init__(self) -> None:
        if len(self.secret_key) != KEY_BYTES or len(self.server_key) not in (0, KEY_BYTES):
            raise ValueError(f"a key of CURVE has {KEY_BYTES} bytes")

    @property
    def public_key(self) -> bytes:
        """The public key for the secret one."""
        return self.cryptography.public_key(self.secret_key)


class _Side(Mechanism):
    """The common part of both sides."""

    def __init__(self, keys: CurveKeys) -> None:
        super().__init__()
        self._keys = keys
        self._cryptography = keys.cryptography
        #: The numbers of the last boxes of this side and of the peer.
        self._said = 0
        self._heard = 0
        #: The key of the connection, once both sides can know it.
        self._key = b""

    def _next_number(self) -> bytes:
        self._said += 1
        return self._said.to_bytes(NONCE_BYTES, "big")

    def _open(self, what: str, box: bytes, nonce: bytes, key: bytes) -> bytes:
        """Decrypt a box of the peer.

        :raises ValueError: when it cannot be decrypted; the text names it as *what*.
        """
        try:
            return self._cryptography.open(box, nonce, key)
        except ValueError:
            raise ValueError(f"the box of {what} cannot be opened") from None

    def _hear_number(self, name: str, number: bytes) -> None:
        """Check the number of the peer's next box."""
        value = int.from_bytes(number, "big")
        if value <= self._heard:
            raise ValueError(
                f"the number {value} of {name} is not above the previous one, {self._heard}"
            )
        self._heard = value

    def _traffic(self, *, as_server: bool) -> CurveTraffic:
        return CurveTraffic(
            self._cryptography,
            self._key,
            as_server=as_server,
            said=self._said,
            heard=self._heard,
        )

    def forget(self) -> None:
        """Drop all secrets."""
        super().forget()
        self._key = b""


def _check_size(name: str, data: bytes, wanted: int, *, exactly: bool = True) -> None:
    size, whole = len(data) + _NAME_BYTES + len(name), wanted + _NAME_BYTES + len(name)
    if size < whole or (exactly and size > whole):
        least = "" if exactly else " at least"
        raise ValueError(f"{name} has {size} bytes, it must have {whole}{least}")


@final
class CurveServer(_Side):
    """The side that clients know by its public key."""

    def __init__(self, keys: CurveKeys) -> None:
        super().__init__(keys)
        self._cookie_key = b""
        self._has_cookie = False

    def most_bytes(self, limit: int) -> int:
        """The size of HELLO, or that of an INITIATE whose metadata have *limit* bytes."""
        if not self._has_cookie:
            return _NAME_BYTES + len("HELLO") + _HELLO_BYTES
        return _NAME_BYTES + len("INITIATE") + _INITIATE_BYTES + limit

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """Take HELLO, then INITIATE."""
        if self._has_cookie:
            if name != b"INITIATE":
                raise unexpected(name, b"INITIATE")
            self._read_initiate(data)
            return HEARD
        if name != b"HELLO":
            raise unexpected(name, b"HELLO")
        out.append(self._welcome(data))
        self._has_cookie = True
        self.keeps_s = COOKIE_S
        return NOTHING

    def _welcome(self, data: bytes) -> bytes:
        """Read HELLO, and answer it."""
        _check_size("HELLO", data, _HELLO_BYTES)
        if data[:2] != _VERSION:
            raise ValueError(f"the peer speaks CURVE {data[0]}.{data[1]}, here it is 1.0")
        cryptography = self._cryptography
        key_at = 2 + len(_PADDING)
        number_at = key_at + KEY_BYTES
        box_at = number_at + NONCE_BYTES
        client, number = data[key_at:number_at], data[number_at:box_at]
        if data[2:key_at] != _PADDING:
            raise ValueError("the padding of HELLO is not zeros")
        key = cryptography.shared_key(client, self._keys.secret_key)
        if self._open("HELLO", data[box_at:], _HELLO + number, key) != _ZEROS:
            raise ValueError("the box of HELLO does not hold zeros")
        self._hear_number("HELLO", number)
        secret = cryptography.random(KEY_BYTES)
        self._cookie_key = cryptography.random(KEY_BYTES)
        nonce = cryptography.random(_LONG_NONCE_BYTES)
        sealed = cryptography.seal(client + secret, _COOKIE + nonce, self._cookie_key)
        text = cryptography.public_key(secret) + nonce + sealed
        nonce = cryptography.random(_LONG_NONCE_BYTES)
        return command_frame(b"WELCOME", nonce + cryptography.seal(text, _WELCOME + nonce, key))

    def _read_initiate(self, data: bytes) -> None:
        _check_size("INITIATE", data, _INITIATE_BYTES, exactly=False)
        cryptography = self._cryptography
        cookie, data = data[:_COOKIE_BYTES], data[_COOKIE_BYTES:]
        number, box = data[:NONCE_BYTES], data[NONCE_BYTES:]
        nonce, sealed = cookie[:_LONG_NONCE_BYTES], cookie[_LONG_NONCE_BYTES:]
        cookie_key, self._cookie_key = self._cookie_key, b""
        self.keeps_s = FOR_EVER
        kept = self._open("the cookie", sealed, _COOKIE + nonce, cookie_key)
        client, secret = kept[:KEY_BYTES], kept[KEY_BYTES:]
        self._key = cryptography.shared_key(client, secret)
        text = self._open("INITIATE", box, _INITIATE + number, self._key)
        self._hear_number("INITIATE", number)
        nonce_at = KEY_BYTES + _LONG_NONCE_BYTES
        public, nonce, vouch = text[:KEY_BYTES], text[KEY_BYTES:nonce_at], text[nonce_at:]
        vouch, self.metadata = vouch[:_VOUCH_BYTES], vouch[_VOUCH_BYTES:]
        key = cryptography.shared_key(public, secret)
        if self._open("the vouch", vouch, _VOUCH + nonce, key) != client + self._keys.public_key:
            raise ValueError("the vouch is for another connection, or for another server")
        self.public_key = public

    def introduce(self, metadata: bytes) -> bytes:
        """Make READY; everything after it is encrypted."""
        number = self._next_number()
        box = self._cryptography.seal(metadata, _READY + number, self._key)
        self.traffic = self._traffic(as_server=True)
        self._key = b""
        return command_frame(b"READY", number + box)

    def forget(self) -> None:
        """Drop all secrets."""
        super().forget()
        self._cookie_key = b""


@final
class CurveClient(_Side):
    """The side that knows the server by its public key."""

    def __init__(self, keys: CurveKeys) -> None:
        super().__init__(keys)
        self._secret = self._cryptography.random(KEY_BYTES)
        self._server = b""
        self._cookie = b""

    def begin(self) -> bytes:
        """Make HELLO."""
        cryptography = self._cryptography
        number = self._next_number()
        key = cryptography.shared_key(self._keys.server_key, self._secret)
        box = cryptography.seal(_ZEROS, _HELLO + number, key)
        public = cryptography.public_key(self._secret)
        return command_frame(b"HELLO", b"".join((_VERSION, _PADDING, public, number, box)))

    def most_bytes(self, limit: int) -> int:
        """Enough for WELCOME, and for a READY whose metadata have *limit* bytes."""
        return _NAME_BYTES + len("WELCOME") + _WELCOME_BYTES + limit

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """Take WELCOME, then READY."""
        if not self._cookie:
            if name != b"WELCOME":
                raise unexpected(name, b"WELCOME")
            self._read_welcome(data)
            return SPEAK
        if name != b"READY":
            raise unexpected(name, b"READY")
        _check_size("READY", data, _READY_BYTES, exactly=False)
        number = data[:NONCE_BYTES]
        self.metadata = self._open("READY", data[NONCE_BYTES:], _READY + number, self._key)
        self._hear_number("READY", number)
        self.public_key = self._keys.server_key
        self.traffic = self._traffic(as_server=False)
        self._key = b""
        return HEARD

    def _read_welcome(self, data: bytes) -> None:
        _check_size("WELCOME", data, _WELCOME_BYTES)
        nonce, box = data[:_LONG_NONCE_BYTES], data[_LONG_NONCE_BYTES:]
        cryptography = self._cryptography
        key = cryptography.shared_key(self._keys.server_key, self._secret)
        text = self._open("WELCOME", box, _WELCOME + nonce, key)
        self._server, self._cookie = text[:KEY_BYTES], text[KEY_BYTES:]
        self._key = cryptography.shared_key(self._server, self._secret)

    def introduce(self, metadata: bytes) -> bytes:
        """Make INITIATE."""
        cryptography, keys = self._cryptography, self._keys
        nonce = cryptography.random(_LONG_NONCE_BYTES)
        key = cryptography.shared_key(self._server, keys.secret_key)
        said = cryptography.public_key(self._secret) + keys.server_key
        vouch = cryptography.seal(said, _VOUCH + nonce, key)
        self._secret = b""
        number = self._next_number()
        text = b"".join((keys.public_key, nonce, vouch, metadata))
        box = cryptography.seal(text, _INITIATE + number, self._key)
        return command_frame(b"INITIATE", self._cookie + number + box)

    def forget(self) -> None:
        """Drop all secrets."""
        super().forget()
        self._secret = b""
