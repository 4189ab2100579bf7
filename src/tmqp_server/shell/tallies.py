"""Counters of the shell, for monitoring; no decision depends on them."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.engine.model.histograms import SHORT_BOUNDS_US, Histogram

__all__ = [
    "BROKEN",
    "BY_CLIENT",
    "BY_SERVER",
    "CLOSINGS",
    "FAULT",
    "REFUSALS",
    "REFUSED",
    "SLOW_READER",
    "STALL",
    "STOPPING",
    "DoorTally",
    "ProcessFacts",
    "ShellTally",
    "count_one",
]

#: Why a connection ended: its peer closed it; the session did, for whatever its protocol demands;
#: reading or sending failed; the log-in was refused; too much waited for the peer; it read nothing
#: for the stall time; the server stops; a bug.
BY_CLIENT: Final = "client"
BY_SERVER: Final = "server"
BROKEN: Final = "broken"
REFUSED: Final = "refused"
SLOW_READER: Final = "slow_reader"
STALL: Final = "stall"
STOPPING: Final = "stopping"
FAULT: Final = "fault"
CLOSINGS: Final = (
    BY_CLIENT,
    BY_SERVER,
    BROKEN,
    REFUSED,
    SLOW_READER,
    STALL,
    STOPPING,
    FAULT,
)
#: Why a connection was not let in: its address is not allowed at this door; there are too many, in
#: all or of its address; the memory is full; the socket failed; they come too fast.
REFUSALS: Final = ("door", "connections", "address", "memory", "socket", "rate")

#: Bounds for numbers of messages.
_COUNTS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


def count_one(counts: dict[str, int], key: str, count: int = 1) -> None:
    """Add 1 to one of several counters."""
    counts[key] = counts.get(key, 0) + count


@final
class DoorTally:
    """The counters of the connections of one door."""

    __slots__ = (
        "admitted",
        "closed",
        "denied",
        "opened",
        "received_bytes",
        "sent_bytes",
        "violations",
    )

    def __init__(self) -> None:
        self.opened = 0
        #: By the reason.
        self.closed: dict[str, int] = {}
        #: Accepted and refused log-ins; zero if access is not checked.
        self.admitted = 0
        self.denied = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        #: Connections whose peers broke the protocol, by the rule.
        self.violations: dict[str, int] = {}


@final
class ShellTally:
    """What one shell has counted.

    Attributes: ``doors`` by name; ``refused`` connections and TLS ``handshakes``, by reason and by
    result; ``lag`` of the event loop; of the storage: the durations ``write`` of batches and
    ``read`` of questions, ``batch``, the messages of each batch, ``failures``, and ``confirm``, the
    time from the first message of a batch to the batch's result, counted for each message;
    ``waits``, how often a rate made a peer wait, by the rate.
    """

    __slots__ = (
        "batch",
        "confirm",
        "doors",
        "failures",
        "handshakes",
        "lag",
        "read",
        "refused",
        "waits",
        "write",
    )

    def __init__(self) -> None:
        self.doors: dict[str, DoorTally] = {}
        self.refused: dict[str, int] = {}
        self.handshakes: dict[str, int] = {}
        self.waits: dict[str, int] = {}
        self.lag = Histogram(SHORT_BOUNDS_US)
        self.write = Histogram(SHORT_BOUNDS_US)
        self.read = Histogram(SHORT_BOUNDS_US)
        self.batch = Histogram(_COUNTS)
        self.confirm = Histogram()
        self.failures = 0

    def door(self, name: str) -> DoorTally:
        """The counters of a door, made at the first call."""
        found = self.doors.get(name)
        if found is None:
            found = self.doors[name] = DoorTally()
        return found


@final
class ProcessFacts:
    """Facts from the operating system; None if it does not report one.

    ``storage_bytes`` is the size of the data directory, ``free_bytes`` the free space on its disk.
    """

    __slots__ = (
        "cpu_s",
        "free_bytes",
        "max_fds",
        "open_fds",
        "resident_bytes",
        "storage_bytes",
    )

    def __init__(self) -> None:
        self.cpu_s: float | None = None
        self.resident_bytes: int | None = None
        self.open_fds: int | None = None
        self.max_fds: int | None = None
        self.storage_bytes: int | None = None
        self.free_bytes: int | None = None
