"""The port between a server and a replicated log: the requests, and their answers.

Theory of operation.  A log is one linearizable object that several servers share.  It has
*entries*, numbered 1, 2, 3, ... without a gap, and one *leader key*, which says who may append. The
key changes only by a claim, and each claim has an *epoch*, a number higher than that of all earlier
claims.  An append names its epoch, and the log carries it out only while that epoch's claim is
valid, in one step with that check.  So a server that has been replaced cannot append any more,
whatever it believes and whatever its clock shows: there is never more than one writer.

*Lost answers.* A request is one attempt.  If the log does not answer, the request may have been
carried out, may be carried out later, or never, and may even be carried out twice.  So every
request can be repeated safely: a repeated append finds its own bytes under its number, a repeated
claim finds its own token in the leader key.  ``tmqp_server.replication`` turns several attempts
into one definite result.

*Leases.* A claim ends automatically if its holder does not renew it within the lease. This only
serves fail-over: no guarantee depends on a clock.

An adapter (:class:`SharedLog`) blocks.  Several threads may use it at the same time.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

from tmqp_server.engine.records import Record
from tmqp_server.storage.port import StoreError

__all__ = [
    "MOST_ENTRY_BYTES",
    "AppendEntry",
    "Appended",
    "Claim",
    "Entries",
    "Fenced",
    "Keep",
    "Leader",
    "Led",
    "LifeOverError",
    "ListMembers",
    "LogAnswer",
    "LogEntry",
    "LogRequest",
    "Member",
    "Members",
    "Misplaced",
    "ReadEntries",
    "Report",
    "Reported",
    "Resign",
    "Seen",
    "SharedLog",
    "Trim",
    "Trimmed",
    "UnansweredError",
    "WatchLog",
]

#: The largest size of an entry in bytes: a log need not accept larger ones.
MOST_ENTRY_BYTES: Final = 1 << 20


class UnansweredError(StoreError):
    """The log did not answer, so it is not known whether it has carried out the request."""


class LifeOverError(StoreError):
    """This server cannot continue, and must not answer any client any more, neither with success
    nor with failure.
    """


class Leader(Record):
    """The server that may append: ``node``, which clients reach at ``address``.

    The claimant made ``token`` for this claim alone; the log made ``epoch``.  ``lease`` is the
    log's name for the claim's lease.
    """

    __slots__ = ("address", "epoch", "lease", "node", "token")

    def __init__(self, node: str, address: str, token: str, epoch: int, lease: int) -> None:
        self.node = node
        self.address = address
        self.token = token
        self.epoch = epoch
        self.lease = lease


class LogEntry(Record):
    """An entry of the log."""

    __slots__ = ("data", "number")

    def __init__(self, number: int, data: bytes) -> None:
        self.number = number
        self.data = data


class Member(Record):
    """A server of the group, as it reported itself.

    ``applied`` is the last entry that it will not read again, ``reports`` increases with each
    report.
    """

    __slots__ = ("address", "applied", "node", "reports")

    def __init__(self, node: str, address: str, applied: int, reports: int) -> None:
        self.node = node
        self.address = address
        self.applied = applied
        self.reports = reports


# --- What is asked -------------------------------------------------------------------------------


class Claim(Record):
    """Become leader, if there is none.  Answer: ``Led``.

    The answer has the leader after the claim: this one, with the claim's token, or another one.
    """

    __slots__ = ("address", "lease_s", "node", "token")

    def __init__(self, node: str, address: str, token: str, lease_s: float) -> None:
        self.node = node
        self.address = address
        self.token = token
        self.lease_s = lease_s


class Keep(Record):
    """Renew a claim's lease.  Answer: ``Led`` with the current leader."""

    __slots__ = ("leader",)

    def __init__(self, leader: Leader) -> None:
        self.leader = leader


class Resign(Record):
    """End a claim, if it is still valid.  Answer: ``Led`` with the current leader, if any."""

    __slots__ = ("leader",)

    def __init__(self, leader: Leader) -> None:
        self.leader = leader


class AppendEntry(Record):
    """Append an entry after the last one, if the epoch's claim is valid.

    Answers: ``Appended``; ``Fenced`` if the claim is not valid; ``Misplaced`` if it is, but the
    number is not the next one.
    """

    __slots__ = ("data", "epoch", "number")

    def __init__(self, epoch: int, number: int, data: bytes) -> None:
        self.epoch = epoch
        self.number = number
        self.data = data


class ReadEntries(Record):
    """Read the entries after a number, up to a number of bytes, but at least one.  Answer:
    ``Entries``.
    """

    __slots__ = ("after", "most_bytes")

    def __init__(self, after: int, most_bytes: int) -> None:
        self.after = after
        self.most_bytes = most_bytes


class WatchLog(Record):
    """Wait up to ``wait_s`` for a new last number or a new epoch. Answer: ``Seen``.

    ``epoch`` is 0 if there is no leader. The log may answer before anything has changed.
    """

    __slots__ = ("epoch", "last", "wait_s")

    def __init__(self, last: int, epoch: int, wait_s: float) -> None:
        self.last = last
        self.epoch = epoch
        self.wait_s = wait_s


class Report(Record):
    """Record how far a member has read the log.  Answer: ``Reported``."""

    __slots__ = ("member",)

    def __init__(self, member: Member) -> None:
        self.member = member


class ListMembers(Record):
    """List all members that have ever reported.  Answer: ``Members``."""

    __slots__ = ()


class Trim(Record):
    """Delete the entries before a number, if the epoch's claim is valid.  ``Trimmed`` or
    ``Fenced``.

    If any member has reported since ``version``, nothing is deleted: that member may need the
    entries.
    """

    __slots__ = ("before", "epoch", "version")

    def __init__(self, epoch: int, before: int, version: int) -> None:
        self.epoch = epoch
        self.before = before
        self.version = version


LogRequest: TypeAlias = (
    Claim | Keep | Resign | AppendEntry | ReadEntries | WatchLog | Report | ListMembers | Trim
)


# --- What is answered ----------------------------------------------------------------------------


class Led(Record):
    """The current leader; None if there is none."""

    __slots__ = ("leader",)

    def __init__(self, leader: Leader | None) -> None:
        self.leader = leader


class Appended(Record):
    """The entry is in the log: a majority of its servers has written it to disk."""

    __slots__ = ()


class Fenced(Record):
    """The epoch's claim is not valid; ``leader`` is the holder of the valid claim, if any."""

    __slots__ = ("leader",)

    def __init__(self, leader: Leader | None) -> None:
        self.leader = leader


class Misplaced(Record):
    """The last entry is ``last``; ``data`` is the entry that has the requested number, if any."""

    __slots__ = ("data", "last")

    def __init__(self, last: int, data: bytes) -> None:
        self.last = last
        self.data = data


class Entries(Record):
    """Consecutive entries.

    ``first`` is the lowest number that the log still has or will give next; requested entries below
    it have been trimmed.
    """

    __slots__ = ("entries", "first")

    def __init__(self, first: int, entries: list[LogEntry]) -> None:
        self.first = first
        self.entries = entries


class Seen(Record):
    """The leader, if any, and the last number, 0 for none."""

    __slots__ = ("last", "leader")

    def __init__(self, leader: Leader | None, last: int) -> None:
        self.leader = leader
        self.last = last


class Reported(Record):
    """The report has been recorded."""

    __slots__ = ()


class Members(Record):
    """All members, and the version of the list, which increases with every report.

    ``is_full`` says that the log has little room left, so it must be trimmed without waiting for
    members that are behind.
    """

    __slots__ = ("is_full", "members", "version")

    def __init__(self, members: list[Member], version: int, is_full: bool = False) -> None:
        self.members = members
        self.version = version
        self.is_full = is_full


class Trimmed(Record):
    """The entries before ``first`` have been deleted, and no others."""

    __slots__ = ("first",)

    def __init__(self, first: int) -> None:
        self.first = first


LogAnswer: TypeAlias = (
    Led | Appended | Fenced | Misplaced | Entries | Seen | Reported | Members | Trimmed
)


class SharedLog(Protocol):
    """An adapter: it sends requests to a log, one attempt each."""

    def ask(self, request: LogRequest) -> LogAnswer:
        """Send a request to the log, and return its answer.

        :raises UnansweredError: when the log does not answer, or not in time.
        """

    def close(self) -> None:
        """Release all resources; a second call does nothing."""
