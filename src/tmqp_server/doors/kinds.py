"""Kinds of doors, which create the doors of a protocol, and their context."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, final

from tmqp.address import Address
from tmqp.limits import Limits
from tmqp_server.doors.bodies import Bodies
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import Door, IdSource

__all__ = ["DoorContext", "DoorKind", "SecretReader"]

#: Reads the file of this name; raises the configuration's error.
SecretReader: TypeAlias = Callable[[str], str]


def _no_secret(name: str) -> str:
    raise ValueError(f"the file {name!r} cannot be read: this door has no access to files")


@final
class DoorContext:
    """What a server gives each of its doors.

    From the configuration: ``limits`` and ``options`` are those of the door's table, ``addresses``
    are where it listens (port 0 means any port), and ``connection`` has the limits of TMQP
    connections.  ``names`` turns the protocol's names into channels and back, with the aliases of
    the door's table, and ``read_secret`` reads a file that an option names.

    About the server: ``native`` is its own TMQP door, None while that is created; ``hostname`` is
    this machine's; ``started_s`` is when the server began, in the engine's time; ``has_storage``
    says that queues can be durable, ``in_group`` that a group of servers keeps their messages, and
    ``has_access`` that the server decides who may connect.

    About connections: ``encrypted`` says that they begin with TLS, ``has_tls`` that they can change
    to TLS (``DoorSession.wants_tls``), and ``requires_certificate`` that clients must show a
    certificate for it.  ``datagrams`` says that the door is for the peers of a UDP socket: each
    chunk is one datagram then, and each portion of ``DoorSession.next_to_send`` is sent as one, or
    is lost.
    """

    __slots__ = (
        "addresses",
        "connection",
        "datagrams",
        "encrypted",
        "has_access",
        "has_storage",
        "has_tls",
        "hostname",
        "in_group",
        "letters",
        "limits",
        "names",
        "native",
        "new_id",
        "options",
        "read_secret",
        "requires_certificate",
        "started_s",
        "wall_clock_offset_s",
    )

    def __init__(
        self,
        new_id: IdSource,
        wall_clock_offset_s: float,
        letters: Letters,
        connection: Limits,
        limits: Mapping[str, Any],
        native: NativeDoor | None = None,
        *,
        has_tls: bool = False,
        has_storage: bool = False,
        in_group: bool = False,
        datagrams: bool = False,
        names: DoorNames | None = None,
        requires_certificate: bool = False,
        options: Mapping[str, Any] | None = None,
        addresses: Sequence[Address] = (),
        hostname: str = "localhost",
        started_s: float = 0.0,
        read_secret: SecretReader | None = None,
        has_access: bool = False,
        encrypted: bool = False,
    ) -> None:
        self.encrypted = encrypted
        self.started_s = started_s
        self.read_secret: SecretReader = _no_secret if read_secret is None else read_secret
        self.has_access = has_access
        self.hostname = hostname
        self.options: Mapping[str, Any] = {} if options is None else options
        self.addresses = addresses
        self.new_id = new_id
        self.wall_clock_offset_s = wall_clock_offset_s
        self.letters = letters
        self.connection = connection
        self.limits = limits
        self.native = native
        self.has_tls = has_tls
        self.has_storage = has_storage
        self.in_group = in_group
        self.datagrams = datagrams
        self.requires_certificate = requires_certificate
        self.names = DoorNames() if names is None else names


class DoorKind:
    """One protocol.

    Attributes: ``name``, also that of its doors; ``number``, kept with its messages and never given
    to another protocol, 0 for one that has no messages of its own; ``default_port``, where it
    listens if nothing else is said; ``has_datagrams``, it is also spoken over UDP
    (``DoorContext.datagrams``); ``changes_to_tls``, its connections may change to TLS after they
    have begun (``DoorSession.wants_tls``); ``has_names``, it names channels otherwise than TMQP
    does (``DoorContext.names``).
    """

    name = ""
    number = 0
    default_port = 0
    has_datagrams = False
    changes_to_tls = False
    has_names = True

    def ports(self, beside: Collection[str]) -> tuple[int, ...]:
        """The ports where it listens by default, on this machine only.

        :param beside: the protocols of the server's other doors.
        """
        return (self.default_port,)

    def bodies(self) -> Bodies:
        """The reader of its stored messages; not called for a kind without a number."""
        raise NotImplementedError

    def open(self, context: DoorContext) -> Door:
        """A door.

        :raises ValueError: for limits or options that cannot be used.
        :raises ModuleNotFoundError: when a package that it needs is not installed.
        """
        raise NotImplementedError

    def dials(self, options: Mapping[str, Any]) -> tuple[Address, ...]:
        """Peers to which a door with these options connects, beside those that connect to it.

        Called after ``open``, which has checked the options.
        """
        return ()

    def encrypts(self, options: Mapping[str, Any]) -> bool:
        """Whether a door with these options encrypts its connections itself, without TLS."""
        return False

    def dialler(self, door: Door) -> Door:
        """The door for the connections that :meth:`dials` names; usually the one that was
        opened."""
        return door

    def listens(self, addresses: Sequence[Address]) -> None:
        """A door of this kind listens, on these ports: port 0 of its table was any."""
