"""The handshakes of ZMTP 3.x by which both sides authenticate and identify themselves: NULL and
PLAIN.

A :class:`Mechanism` is one side of one handshake.  It takes the commands of the peer, and makes
those of this side; it does not read the metadata.  CURVE is in ``curve.py``.
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

#: What to do after a command of the peer: nothing; identify this side; read the peer's metadata.
NOTHING: Final = 0
SPEAK: Final = 1
HEARD: Final = 2
FOR_EVER: Final = float("inf")


def unexpected(name: bytes, expected: bytes) -> ValueError:
    """The error for a command that is not the expected one."""
    told = name.decode("ascii", "replace")
    return ValueError(f"the peer sent {told!r} instead of {expected.decode()}")


class Mechanism:
    """One side of a handshake.

    Attributes: ``metadata``, the peer's, once it has sent them; ``user`` and ``password``, those of
    a PLAIN client; ``public_key``, which the CURVE peer has proven to own; ``traffic``, which
    encrypts everything after the handshake, None without encryption; ``keeps_s``, for how many more
    seconds the handshake can continue.
    """

    def __init__(self) -> None:
        self.metadata = b""
        self.user = b""
        self.password = b""
        self.public_key = b""
        self.traffic: CurveTraffic | None = None
        self.keeps_s = FOR_EVER

    def begin(self) -> bytes:
        """The first command of this side, once both have named the mechanism; may be empty."""
        return b""

    def most_bytes(self, limit: int) -> int:
        """The most bytes of the peer's next command, if an unencrypted one may have *limit*."""
        return limit

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """Take a command of the peer; an immediate answer is added to *out*.

        :returns: what to do next.
        :raises ValueError: when it is invalid or not the expected one; the text says why.
        """
        raise NotImplementedError

    def introduce(self, metadata: bytes) -> bytes:
        """The command that identifies this side."""
        return command_frame(b"READY", metadata)

    def forget(self) -> None:
        """Drop all secrets, because the connection is over."""
        self.password = b""

    def _hear(self, name: bytes, data: bytes, expected: bytes) -> int:
        """Take the peer's metadata from this command."""
        if name != expected:
            raise unexpected(name, expected)
        self.metadata = data
        return HEARD


@final
class NullMechanism(Mechanism):
    """NULL: both sides identify themselves, in any order."""

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """Take READY."""
        return self._hear(name, data, b"READY")


@final
class PlainServer(Mechanism):
    """The server of PLAIN: the client sends a name and a password, and gets WELCOME before they are
    checked."""

    def __init__(self) -> None:
        super().__init__()
        self._is_welcome = False

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """Take HELLO, then INITIATE."""
        if self._is_welcome:
            return self._hear(name, data, b"INITIATE")
        if name != b"HELLO":
            raise unexpected(name, b"HELLO")
        self._read_hello(data)
        self._is_welcome = True
        out.append(command_frame(b"WELCOME"))
        return NOTHING

    def _read_hello(self, data: bytes) -> None:
        """Read a name and a password, each after its length in a byte."""
        password_at = 2 + data[0] if data else 0
        if not password_at or password_at > len(data):
            raise ValueError("HELLO has no name and password")
        if password_at + data[password_at - 1] != len(data):
            raise ValueError("HELLO does not end with the password")
        self.user = data[1 : password_at - 1]
        self.password = data[password_at:]


@final
class PlainClient(Mechanism):
    """The client of PLAIN.

    :param user: at most 255 bytes, like the password.
    """

    def __init__(self, user: bytes, password: bytes) -> None:
        super().__init__()
        self._hello = bytes((len(user),)) + user + bytes((len(password),)) + password
        self._is_welcome = False

    def begin(self) -> bytes:
        """Make HELLO."""
        return command_frame(b"HELLO", self._hello)

    def take(self, name: bytes, data: bytes, out: list[bytes]) -> int:
        """Take WELCOME, then READY."""
        if self._is_welcome:
            return self._hear(name, data, b"READY")
        if name != b"WELCOME":
            raise unexpected(name, b"WELCOME")
        self._is_welcome = True
        return SPEAK

    def introduce(self, metadata: bytes) -> bytes:
        """Make INITIATE."""
        return command_frame(b"INITIATE", metadata)
