"""How two sides of ZMTP 3.x prove who they are and say what they are: NULL and PLAIN.

A :class:`Mechanism` is one side of one handshake.  It takes the commands of the peer, and makes
those of this side; what is in the metadata is not its business.  CURVE is in ``curve.py``.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_wires.zmtp.boxes import CurveTraffic
from tmqp_wires.zmtp.frames import command_frame

__all__ = [
    "FOR_EVER",
    "HEARD",
    "NOTHING",
    "SPEAK",
    "Mechanism",
    "NullMechanism",
    "PlainClient",
    "PlainServer",
    "unexpected",
]

#: What a command of the peer leads to: nothing yet; this side is to say what it is; the peer has
#: said what it is.
NOTHING: Final = 0
SPEAK: Final = 1
HEARD: Final = 2
FOR_EVER: Final = float("inf")


def unexpected(name: bytes, expected: bytes) -> ValueError:
    """The peer has sent another command than was its turn."""
    told = name.decode("ascii", "replace")
    return ValueError(f"the peer sent {told!r} instead of {expected.decode()}")


class Mechanism:
    """One side of a handshake.

    Attributes: ``metadata``, the peer's, once it has said them; ``user`` and ``password``, those
    that a client of PLAIN has shown, and ``public_key``, which the peer of CURVE has proven to be
    its own; ``traffic``, what seals everything behind the handshake, None where nothing is sealed;
    ``keeps_s``, for how many seconds the handshake can continue from here.
    """

    def __init__(self) -> None:
        self.metadata = b""
        self.user = b""
        self.password = b""
        self.public_key = b""
        self.traffic: CurveTraffic | None = None
        self.keeps_s = FOR_EVER

    def begin(self) -> bytes:
        """What this side says first, once both have named the mechanism."""
        return b""

    def most_bytes(self, limit: int) -> int:
        """How many bytes the peer's next command may have, where one in the clear has so many."""
        return limit

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """Take a command of the peer; what is answered at once is added to *out*.

        :returns: what it leads to.
        :raises ValueError: when it is not the one that is expected; the text says why.
        """
        raise NotImplementedError

    def introduce(self, metadata: bytes) -> bytes:
        """The command by which this side says what it is."""
        return command_frame(b"READY", metadata)

    def forget(self) -> None:
        """Keep no secret: the connection is over."""
        self.password = b""

    def _hear(self, name: bytes, data: bytes, expected: bytes) -> int:
        """The peer says what it is, by this command."""
        if name != expected:
            raise unexpected(name, expected)
        self.metadata = data
        return HEARD


@final
class NullMechanism(Mechanism):
    """NULL: both sides say what they are, in any order."""

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """READY."""
        return self._hear(name, data, b"READY")


@final
class PlainServer(Mechanism):
    """PLAIN: the client shows a name and a password, and is made welcome before they are judged."""

    def __init__(self) -> None:
        super().__init__()
        self._is_welcome = False

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """HELLO, then INITIATE."""
        if self._is_welcome:
            return self._hear(name, data, b"INITIATE")
        if name != b"HELLO":
            raise unexpected(name, b"HELLO")
        self._read_hello(data)
        self._is_welcome = True
        out.append(command_frame(b"WELCOME"))
        return NOTHING

    def _read_hello(self, data: bytes) -> None:
        """A name and a password, each behind its length in a byte."""
        password_at = 2 + data[0] if data else 0
        if not password_at or password_at > len(data):
            raise ValueError("HELLO has no name and password")
        if password_at + data[password_at - 1] != len(data):
            raise ValueError("HELLO does not end with the password")
        self.user = data[1 : password_at - 1]
        self.password = data[password_at:]


@final
class PlainClient(Mechanism):
    """PLAIN, the other side.

    :param user: at most 255 bytes, as the password.
    """

    def __init__(self, user: bytes, password: bytes) -> None:
        super().__init__()
        self._hello = bytes((len(user),)) + user + bytes((len(password),)) + password
        self._is_welcome = False

    def begin(self) -> bytes:
        """HELLO."""
        return command_frame(b"HELLO", self._hello)

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """WELCOME, then READY."""
        if self._is_welcome:
            return self._hear(name, data, b"READY")
        if name != b"WELCOME":
            raise unexpected(name, b"WELCOME")
        self._is_welcome = True
        return SPEAK

    def introduce(self, metadata: bytes) -> bytes:
        """INITIATE."""
        return command_frame(b"INITIATE", metadata)
