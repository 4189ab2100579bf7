"""What a ZMTP peer has said, one class for each kind."""

from __future__ import annotations

from typing import TypeAlias, final

from tmqp_wires.zmtp.frames import parts_of

__all__ = [
    "Cancel",
    "Event",
    "MessageReceived",
    "PeerError",
    "PeerReady",
    "Subscribe",
    "Violation",
]


@final
class PeerReady:
    """The peer has said what it is; answer with ``ready`` or ``refuse`` if that was not done.

    ``socket_type`` is in upper case, ``identity`` empty for a peer without one, ``properties`` are
    its other metadata, by their names in lower case.  ``user`` and ``password`` are those of PLAIN,
    ``public_key`` is the one of CURVE whose secret key the peer has.
    """

    __slots__ = ("identity", "password", "properties", "public_key", "socket_type", "user")

    def __init__(
        self,
        socket_type: str,
        identity: bytes,
        properties: dict[str, bytes],
        user: bytes = b"",
        password: bytes = b"",
        public_key: bytes = b"",
    ) -> None:
        self.socket_type = socket_type
        self.identity = identity
        self.properties = properties
        self.user = user
        self.password = password
        self.public_key = public_key

    def __repr__(self) -> str:
        return f"PeerReady({self.socket_type!r}, {self.identity!r}, {self.properties!r})"


@final
class MessageReceived:
    """A message.  ``raw`` are its frames as they came, in one piece."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @property
    def parts(self) -> list[bytes]:
        """What its frames hold."""
        return parts_of(self.raw)

    def __repr__(self) -> str:
        return f"MessageReceived({self.parts!r})"


@final
class Subscribe:
    """Send messages whose first part begins so."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"Subscribe({self.prefix!r})"


@final
class Cancel:
    """Take back one such subscription."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"Cancel({self.prefix!r})"


@final
class PeerError:
    """The peer has refused this side for good, and says why."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"PeerError({self.reason!r})"


@final
class Violation:
    """The peer has broken the protocol, a limit or a time: the connection is over."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Violation({self.text!r})"


Event: TypeAlias = PeerReady | MessageReceived | Subscribe | Cancel | PeerError | Violation
