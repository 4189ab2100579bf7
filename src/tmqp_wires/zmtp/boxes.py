"""The boxes of CURVE in which frames travel once two sides know each other, and what makes boxes.

A MESSAGE is its name behind the name's length, a number of eight bytes that increases with each of
them, and a box: a byte of flags and what the frame would hold in the clear.  Commands travel so,
too.  libzmq sends a MESSAGE as a frame of a message, and reads no other; the RFC calls it a
command.  Both are read.
"""

from __future__ import annotations

from typing import Final, Protocol, final

from tmqp_wires.zmtp.frames import COMMAND, MORE, bounds, frame

__all__ = ["NONCE_BYTES", "SEALED_BYTES", "SEAL_BYTES", "Cryptography", "CurveTraffic"]

#: What the number of a box takes, and what a box is longer than what is in it.
NONCE_BYTES: Final = 8
SEAL_BYTES: Final = 16
_NAME: Final = b"\x07MESSAGE"
_NAME_BYTES: Final = len(_NAME)
_BOX_AT: Final = _NAME_BYTES + NONCE_BYTES
#: What a MESSAGE is longer than what it carries.
SEALED_BYTES: Final = _BOX_AT + SEAL_BYTES + 1
_OF_SERVER: Final = b"CurveZMQMESSAGES"
_OF_CLIENT: Final = b"CurveZMQMESSAGEC"
#: Flags in a box.
_MORE: Final = 1
_COMMAND: Final = 2


class Cryptography(Protocol):
    """Curve25519, XSalsa20 and Poly1305, as NaCl's ``crypto_box`` puts them together; and bytes
    that nobody can guess.  ``sodium.py`` has it."""

    def random(self, size: int) -> bytes:
        """So many bytes that nobody can guess."""

    def public_key(self, secret: bytes) -> bytes:
        """The public key that belongs to a secret one, both of 32 bytes."""

    def shared_key(self, public: bytes, secret: bytes) -> bytes:
        """The key that both owners of two pairs have, each by his secret one.

        :raises ValueError: for a public key that is none.
        """

    def seal(self, text: bytes, nonce: bytes, key: bytes) -> bytes:
        """A box: 16 bytes of seal, then as many as the text has.  A nonce has 24 bytes."""

    def open(self, box: bytes, nonce: bytes, key: bytes) -> bytes:
        """What is in a box.

        :raises ValueError: when it was not sealed so.
        """


@final
class CurveTraffic:
    """Seals what this side sends, and opens what the peer does.

    :param key: the key that the two have for this connection.
    :param said: the number of the last box of this side.
    :param heard: that of the peer's last one.
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
        """Frames, of messages and of commands, as they are sent: in this order, and all of them."""
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
        """The frame that a MESSAGE carries, as it would have come in the clear.

        :raises ValueError: when it is not one, is none of the peer's, or does not follow those that
            have come.
        """
        if not body.startswith(_NAME):
            raise ValueError("an unencrypted frame arrived after the handshake of CURVE")
        if len(body) < SEALED_BYTES:
            raise ValueError(f"a MESSAGE has {len(body)} bytes, {SEALED_BYTES} at least")
        number = int.from_bytes(body[_NAME_BYTES:_BOX_AT], "big")
        if number <= self._heard:
            raise ValueError(
                f"the MESSAGE {number} comes behind {self._heard}: it is repeated or out of order"
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
