"""Events of a ZMTP peer, one class for each kind."""

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
    """The peer has identified itself; answer with ``ready`` or ``refuse``, unless this side has
    already identified itself.

    ``socket_type`` is in upper case, ``identity`` is empty for a peer without one, ``properties``
    are its other metadata, by lower-case names.  ``user`` and ``password`` are those of PLAIN,
    ``public_key`` is the peer's CURVE key, which it has proven to own.
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
    """A message.  ``raw`` has its frames as received, in one piece."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @property
    def parts(self) -> list[bytes]:
        """The bodies of its frames."""
        return parts_of(self.raw)

    def __repr__(self) -> str:
        return f"MessageReceived({self.parts!r})"


@final
class Subscribe:
    """The peer subscribes to messages whose first part begins with ``prefix``."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"Subscribe({self.prefix!r})"


@final
class Cancel:
    """The peer cancels one such subscription."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"Cancel({self.prefix!r})"


@final
class PeerError:
    """The peer has refused this side permanently, with a reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"PeerError({self.reason!r})"


@final
class Violation:
    """The peer has violated the protocol, a limit or a timeout: the connection is over."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Violation({self.text!r})"


Event: TypeAlias = PeerReady | MessageReceived | Subscribe | Cancel | PeerError | Violation
