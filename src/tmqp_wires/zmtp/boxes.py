"""CURVE's encrypted frames after the handshake, and the interface of the cryptography.

A MESSAGE is the length of its name and the name, a number of eight bytes that increases with each
MESSAGE, and a box: a byte of flags and the unencrypted content of the frame.  Commands are sent in
the same way.  libzmq sends a MESSAGE as a message frame, and reads no other; the RFC calls it a
command.  Both are read.
"""

from __future__ import annotations

from typing import Final, Protocol, final

from tmqp_wires.zmtp.frames import COMMAND, MORE, bounds, frame

__all__ = ["NONCE_BYTES", "SEALED_BYTES", "SEAL_BYTES", "Cryptography", "CurveTraffic"]

#: The bytes of a box's number, and by how many bytes a box is longer than its content.
NONCE_BYTES: Final = 8
SEAL_BYTES: Final = 16
_NAME: Final = b"\x07MESSAGE"
_NAME_BYTES: Final = len(_NAME)
_BOX_AT: Final = _NAME_BYTES + NONCE_BYTES
#: By how many bytes a MESSAGE is longer than its content.
SEALED_BYTES: Final = _BOX_AT + SEAL_BYTES + 1
_OF_SERVER: Final = b"CurveZMQMESSAGES"
_OF_CLIENT: Final = b"CurveZMQMESSAGEC"
#: Flags in a box.
_MORE: Final = 1
_COMMAND: Final = 2


class Cryptography(Protocol):
    """Curve25519, XSalsa20 and Poly1305, combined as in NaCl's ``crypto_box``; and random bytes.
    ``sodium.py`` implements it."""

    def random(self, size: int) -> bytes:
        """Cryptographically secure random bytes."""

    def public_key(self, secret: bytes) -> bytes:
        """The public key for a secret key; both have 32 bytes."""

    def shared_key(self, public: bytes, secret: bytes) -> bytes:
        """The key that both sides compute from their own secret key and the other's public key.

        :raises ValueError: for an invalid public key.
        """

    def seal(self, text: bytes, nonce: bytes, key: bytes) -> bytes:
        """Encrypt a text: the box has a tag of 16 bytes and as many bytes as the text.  A nonce has
        24 bytes."""

    def open(self, box: bytes, nonce: bytes, key: bytes) -> bytes:
        """Decrypt a box.

        :raises ValueError: when it was not encrypted with this nonce and key.
        """


@final
class CurveTraffic:
    """Encrypts what this side sends, and decrypts what the peer sends.

    :param key: the shared key of the connection.
    :param said: the number of the last box of this side.
    :param heard: the number of the peer's last box.
    """

    __slots__ = ("_heard", "_key", "_of_peer", "_ours", "_said", "_cryptography")

    def __init__(
        self, cryptography: Cryptography, key: bytes, *, as_server: bool, said: int, heard: int
    ) -> None:
        self._cryptography = cryptography
        self._key = key
        self._said = said
        self._heard = heard
        self._ours = _OF_SERVER if as_server else _OF_CLIENT
        self._of_peer = _OF_CLIENT if as_server else _OF_SERVER

    def sealed(self, raw: bytes) -> bytes:
        """Encrypt frames of messages and commands; the caller must send all of them, in this
        order."""
        pieces: list[bytes] = []
        at = 0
        while at < len(raw):
            flags = raw[at]
            begin, at = bounds(raw, at)
            inner = (_MORE if flags & MORE else 0) | (_COMMAND if flags & COMMAND else 0)
            self._said += 1
            number = self._said.to_bytes(NONCE_BYTES, "big")
            text = bytes((inner,)) + raw[begin:at]
            box = self._cryptography.seal(text, self._ours + number, self._key)
            pieces.append(frame(0, b"".join((_NAME, number, box))))
        return b"".join(pieces)

    def opened(self, body: bytes) -> bytes:
        """The frame that a MESSAGE carries, decrypted.

        :raises ValueError: when it is not a MESSAGE, cannot be decrypted, or does not have a higher
            number than the previous one.
        """
        if not body.startswith(_NAME):
            raise ValueError("an unencrypted frame arrived after the handshake of CURVE")
        if len(body) < SEALED_BYTES:
            raise ValueError(f"a MESSAGE has {len(body)} bytes, {SEALED_BYTES} at least")
        number = int.from_bytes(body[_NAME_BYTES:_BOX_AT], "big")
        if number <= self._heard:
            raise ValueError(
                f"the MESSAGE {number} follows {self._heard}: it is repeated or out of order"
            )
        nonce = self._of_peer + body[_NAME_BYTES:_BOX_AT]
        try:
            text = self._cryptography.open(body[_BOX_AT:], nonce, self._key)
        except ValueError:
            raise ValueError(f"the box of the MESSAGE {number} cannot be opened") from None
        self._heard = number
        inner = text[0]
        if inner & ~(_MORE | _COMMAND):
            raise ValueError(f"a box has the flags {inner:#04x}")
        flags = (MORE if inner & _MORE else 0) | (COMMAND if inner & _COMMAND else 0)
        return frame(flags, text[1:])
