"""``LogServer``: a replicated log as one object in memory, which does what ``storage.log`` says.

It is linearizable because each request is one call.  Behind :class:`~tmqp_sim.replicas.links.Link`
it is the log of the simulation; asked directly (:meth:`LogServer.ask`) it is an adapter like others
and passes their suite of tests.

It keeps everything that it ever had, for the checkers.
"""

from __future__ import annotations

from collections.abc import Callable

from tmqp_server.storage.log import (
    Appended,
    AppendEntry,
    Claim,
    Entries,
    Fenced,
    Keep,
    Leader,
    Led,
    ListMembers,
    LogAnswer,
    LogEntry,
    LogRequest,
    Member,
    Members,
    Misplaced,
    ReadEntries,
    Report,
    Reported,
    Resign,
    Seen,
    Trim,
    Trimmed,
    WatchLog,
)

__all__ = ["LogServer"]


class LogServer:
    """The log.

    :param clock: its clock, in seconds, which ends leases.

    Attributes: ``history``, every entry that there ever was; ``first`` and ``last``, what it still
    has; ``claims``, every claim, by epoch; ``refused``, how many appends were; ``is_full`` is for
    whoever uses it to set.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.history: dict[int, bytes] = {}
        self.first = 1
        self.last = 0
        self.claims: dict[int, Leader] = {}
        self.refused = 0
        self.is_full = False
        self._clock = clock
        self._revision = 0
        self._leader: Leader | None = None
        self._lease_s = 0.0
        self._ends_at = 0.0
        self._reported = 0
        self._members: dict[str, Member] = {}

    def leader(self) -> Leader | None:
        """Who leads, once leases that are over have ended."""
        if self._leader is not None and self._clock() >= self._ends_at:
            self._leader = None
        return self._leader

    def close(self) -> None:
        """Nothing is held."""

    def ask(self, request: LogRequest) -> LogAnswer:
        """Carry a request out; a watch is answered at once."""
        if isinstance(request, AppendEntry):
            return self._append(request)
        if isinstance(request, WatchLog):
            return Seen(self.leader(), self.last)
        if isinstance(request, ReadEntries):
            return self._read(request)
        if isinstance(request, Claim):
            return self._claim(request)
        if isinstance(request, Keep):
            if self._stands(request.leader.epoch):
                self._ends_at = self._clock() + self._lease_s
            return Led(self.leader())
        if isinstance(request, Resign):
            if self._stands(request.leader.epoch):
                self._leader = None
            return Led(self.leader())
        if isinstance(request, Report):
            self._revision += 1
            self._reported = self._revision
            self._members[request.member.node] = request.member
            return Reported()
        if isinstance(request, ListMembers):
            return Members(list(self._members.values()), self._revision, self.is_full)
        assert isinstance(request, Trim), "every request has an answer"
        if not self._stands(request.epoch):
            return Fenced(self.leader())
        if request.version >= self._reported:
            self.first = max(self.first, min(request.before, self.last + 1))
        return Trimmed(self.first)

    def changed(self, request: WatchLog) -> bool:
        """Whether there is something to tell to who watches."""
        leader = self.leader()
        epoch = 0 if leader is None else leader.epoch
        return (self.last, epoch) != (request.last, request.epoch)

    def _stands(self, epoch: int) -> bool:
        leader = self.leader()
        return leader is not None and leader.epoch == epoch

    def _claim(self, request: Claim) -> LogAnswer:
        leader = self.leader()
        if leader is None:
            self._revision += 1
            epoch = self._revision
            leader = Leader(request.node, request.address, request.token, epoch, epoch)
            self._leader = self.claims[epoch] = leader
            self._lease_s = request.lease_s
            self._ends_at = self._clock() + request.lease_s
        return Led(leader)

    def _append(self, request: AppendEntry) -> LogAnswer:
        if not self._stands(request.epoch):
            self.refused += 1
            return Fenced(self.leader())
        if request.number != self.last + 1:
            return Misplaced(self.last, self.history.get(request.number, b""))
        self._revision += 1
        self.last = request.number
        self.history[request.number] = request.data
        return Appended()

    def _read(self, request: ReadEntries) -> LogAnswer:
        found: list[LogEntry] = []
        size = 0
        number = request.after + 1
        while self.first <= number <= self.last and (not found or size < request.most_bytes):
            data = self.history[number]
            found.append(LogEntry(number, data))
            size += len(data)
            number += 1
        return Entries(self.first, found)
