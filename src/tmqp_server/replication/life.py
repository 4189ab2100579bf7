"""The life of a server in a group: it stands by, claims, completes, leads, and ends.

Theory of operation.  Every server begins as a *standby*: it reads the log and applies what it reads
to its own store.  When no server leads and it has read everything, it *claims*.  After a claim, no
other server can append, so a read that finds nothing has found the end of the log: the server
*completes* its store up to there, appends its own ``BEGIN`` entry, and only then *leads*, that is,
serves clients.

A leader renews its claim.  If it cannot do so for the whole lease, or the log says that the claim
is not valid, the life *ends*: the server answers no client any more, and a new life begins with
what its disk has.  A leader never becomes a standby again, because its store may have more than the
log, and its clients may know of it.

A standby waits until the leader's lease expires.  A lost and then refused connection to the leader
would show the failure sooner, but a draining leader looks the same, and a claim would prevent it
from writing the rest.  The one server that knows better is the leader's own next life: it finds a
claim of its node that is not its own, *resigns* it, and lets the others claim first, because they
are up to date.

*Joining.* From a member's first report on, the log keeps what the member needs.  So a life first
checks that the log still has the next entry, then reports, and applies nothing before the report is
answered.  A server that finds the log too short does not report: it would only keep the others from
trimming.

Requests to the log are sent on four *lines*, each with one open request at a time: the main line,
which reads, claims and begins, and the lines that keep the claim, report, and trim.  An unanswered
request is repeated after a pause.
"""

from __future__ import annotations

import math
from typing import Final, final

from tmqp.backoff import Backoff
from tmqp_server.replication.appending import ASKING, FENCED, Appending
from tmqp_server.replication.effects import Apply, AskLog, Begin, End, Lead, LifeEffect
from tmqp_server.replication.members import MemberTable
from tmqp_server.storage.log import (
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
    ReadEntries,
    Report,
    Resign,
    Seen,
    Trim,
    Trimmed,
    WatchLog,
)

__all__ = [
    "CLAIMING",
    "COMPLETING",
    "ENDED",
    "LEADER",
    "STANDBY",
    "Life",
    "LifeSettings",
]

#: States.
STANDBY: Final = 0
CLAIMING: Final = 1
COMPLETING: Final = 2
LEADER: Final = 3
ENDED: Final = 4

#: Pauses after requests that were not answered, in seconds.
_PAUSES: Final = Backoff(0.05, 0.5, 0.0)
#: How often a claim is renewed within its lease.
_KEPT_PER_LEASE: Final = 4
#: After resigning an earlier life's claim, a server lets others claim for this long, in seconds.
_GIVES_WAY_S: Final = 0.5
#: How many bytes are read at once.
_READ_BYTES: Final = 4 << 20


class LifeSettings:
    """The settings of a server in its group: its name, its address for clients, and times in
    seconds.

    :param lease_s: how long a claim is valid without being renewed.
    :param watch_s: how long the log is asked to wait for news.
    :param report_s: the time between two reports, at least if there is news, and ten times as much
        if there is none.
    :param trim_s: the time between two looks at the members.
    :param forget_s: how long the log is kept for a member that is silent.
    :param most_kept: how many entries of the log are kept for a member that is behind.
    """

    __slots__ = (
        "address",
        "forget_s",
        "lease_s",
        "most_kept",
        "node",
        "report_s",
        "trim_s",
        "watch_s",
    )

    def __init__(
        self,
        node: str,
        address: str,
        lease_s: float = 2.0,
        watch_s: float = 5.0,
        report_s: float = 1.0,
        trim_s: float = 5.0,
        forget_s: float = 600.0,
        most_kept: int = 20_000,
    ) -> None:
        self.node = node
        self.address = address
        self.lease_s = lease_s
        self.watch_s = watch_s
        self.report_s = report_s
        self.trim_s = trim_s
        self.forget_s = forget_s
        self.most_kept = most_kept


class _Line:
    """A line to the log: its open request, and when the next one is due."""

    __slots__ = ("due", "failures", "request")

    def __init__(self) -> None:
        self.request: LogRequest | None = None
        self.due = math.inf
        self.failures = 0


@final
class Life:
    """One life.

    :param token: a text that no other life has.
    :param applied: the last entry of the log that the store has.
    :param effects: gets the effects, in order.

    Attributes: ``state``; ``leader``, who leads as far as is known, this server included; ``last``,
    the last number of the log that was seen; ``read``, the last entry that was read; ``settings``;
    ``members``, as a leader knows them.
    """

    def __init__(
        self, settings: LifeSettings, token: str, applied: int, effects: list[LifeEffect]
    ) -> None:
        self.state: int = STANDBY
        self.leader: Leader | None = None
        self.last = 0
        self.read = applied
        self.members = MemberTable(settings.forget_s, settings.most_kept)
        self.settings = self._settings = settings
        self._token = token
        self._out = effects
        self._carried = applied
        self._reported = -1
        self._reports = 0
        self._reported_at = -math.inf
        self._trimmed = 0
        self._kept_at = math.inf
        self._seen_at = -math.inf
        self._is_new = True
        self._has_joined = False
        self._has_looked = False
        self._is_applying = False
        self._appending: Appending | None = None
        self._main = _Line()
        self._keep = _Line()
        self._report = _Line()
        self._trim = _Line()
        self._lines = (self._main, self._keep, self._report, self._trim)

    # -- what the world says --------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Begin."""
        self._go_on(now)

    def answered(self, request: LogRequest, answer: LogAnswer, now: float) -> None:
        """Handle the log's answer to a request; answers that are no longer awaited are ignored."""
        if self.state == ENDED:
            return
        line = self._line_of(request)
        if line is None:
            return
        line.request = None
        line.failures = 0
        if line is self._main:
            self._main_answered(request, answer, now)
        elif line is self._keep:
            self._keep_answered(answer, now)
        elif line is self._report:
            self._has_joined = True
            self._report_later(now)
            self._go_on(now)
        else:
            self._trim_answered(answer, now)

    def unanswered(self, request: LogRequest, now: float) -> None:
        """Handle that the log has not answered a request, which may or may not have been carried
        out.
        """
        line = self._line_of(request)
        if self.state == ENDED or line is None:
            return
        line.request = None
        line.failures += 1
        pause_s = _PAUSES.delay_s(line.failures)
        if line is self._main and self._appending is not None:
            pause_s = self._appending.unanswered()
        line.due = now + pause_s

    def applied(self, carried: int, now: float) -> None:
        """Handle that the store has applied the entries; its disk has those up to ``carried``."""
        self._is_applying = False
        self.carried(carried, now)
        if self.state == COMPLETING and self._appending is not None:
            self._appending = None
            self.state = LEADER
            assert self.leader is not None, "it was claimed"
            self._trim.due = now + self._settings.trim_s
            self._out.append(Lead(self.leader))
        elif self.state != ENDED:
            self._go_on(now)

    def carried(self, number: int, now: float) -> None:
        """Note that the disk has the entries up to a number: they need not be read again."""
        self._carried = number
        if self._has_joined and self._report.request is None and self.state != ENDED:
            self._report_later(now)

    def begin(self, entry: LogEntry, now: float) -> None:
        """Append the entry with which to begin, which the store has made."""
        if self.state != COMPLETING:
            return
        leader = self.leader
        assert leader is not None, "it was claimed"
        self._appending = Appending(leader.epoch, entry)
        self._ask(self._main, self._appending.request)
        self._kept_in_time(now)

    def fenced(self, reason: str) -> None:
        """End the life: the store could not append, or cannot continue."""
        self._end(reason)

    def stop(self) -> None:
        """Stop cleanly: a leader resigns, after what its store has appended."""
        if self.state in (COMPLETING, LEADER) and self.leader is not None:
            self._out.append(AskLog(Resign(self.leader)))
        self._end("the server stops")

    # -- time -----------------------------------------------------------------------------------

    def due(self) -> float:
        """When :meth:`on_deadline` wants to be called; infinity for never."""
        if self.state == ENDED:
            return math.inf
        due = min([line.due for line in self._lines])
        return min(due, self._kept_at + self._settings.lease_s)

    def on_deadline(self, now: float) -> None:
        """Send the requests that are due."""
        if self.state == ENDED or not self._kept_in_time(now):
            return
        for line in self._lines:
            if line.due > now:
                continue
            line.due = math.inf
            if line is self._main:
                self._go_on(now)
            elif line is self._keep:
                assert self.leader is not None, "it was claimed"
                self._ask(line, Keep(self.leader))
            elif line is self._report:
                self._report_now(now)
            else:
                self._ask(line, ListMembers())

    def _kept_in_time(self, now: float) -> bool:
        """Return whether the claim may still be valid; if not, end the life."""
        if now < self._kept_at + self._settings.lease_s:
            return True
        self._end(f"the claim could not be kept for {self._settings.lease_s:g} s")
        return False

    # -- the main line --------------------------------------------------------------------------

    def _go_on(self, now: float) -> None:
        """Send the next request on the main line, unless one is open."""
        if self._main.request is not None or self._is_applying:
            return
        self._main.due = math.inf
        if self.state == STANDBY:
            self._stand_by(now)
        elif self.state == CLAIMING:
            self._claim()
        elif self.state == COMPLETING:
            if self._appending is None:
                self._ask(self._main, ReadEntries(self.read, _READ_BYTES))
            else:
                self._ask(self._main, self._appending.request)

    def _stand_by(self, now: float) -> None:
        leader = self.leader
        epoch = 0 if leader is None else leader.epoch
        if self._is_new:
            self._ask(self._main, ReadEntries(self.read, 1))
        elif not self._has_joined:
            return  # the report is out
        elif leader is not None and self._is_left_behind(leader):
            self._ask(self._main, Resign(leader))
        elif self.last > self.read:
            self._ask(self._main, ReadEntries(self.read, _READ_BYTES))
        elif self._main.failures or not self._has_looked:
            self._ask(self._main, WatchLog(self.last, epoch, 0.0))
        elif leader is not None and leader.token == self._token:
            # By an attempt that was not answered; the claim stood when the log was examined.
            self._claimed(leader, self._seen_at)
        elif leader is None:
            self.state = CLAIMING
            self._claim()
        else:
            self._ask(self._main, WatchLog(self.last, epoch, self._settings.watch_s))

    def _is_left_behind(self, leader: Leader) -> bool:
        """Whether a claim is that of an earlier life of this server, of which only one runs at a
        time.
        """
        return leader.node == self._settings.node and leader.token != self._token

    def _claim(self) -> None:
        settings = self._settings
        claim = Claim(settings.node, settings.address, self._token, settings.lease_s)
        self._ask(self._main, claim)

    def _main_answered(self, request: LogRequest, answer: LogAnswer, now: float) -> None:
        if isinstance(request, ReadEntries):
            assert isinstance(answer, Entries), "a read has one kind of answer"
            self._has_read(answer, now)
        elif isinstance(request, WatchLog):
            assert isinstance(answer, Seen), "so has a watch"
            self.leader, self.last = answer.leader, answer.last
            self._has_looked = True
            self._seen_at = now
            self._go_on(now)
        elif isinstance(request, Claim):
            assert isinstance(answer, Led), "so has a claim"
            self.leader = answer.leader
            if answer.leader is not None and answer.leader.token == self._token:
                self._claimed(answer.leader, now)
            else:
                self.state = STANDBY
                self._go_on(now)
        elif isinstance(request, Resign):
            assert isinstance(answer, Led), "so has a claim that is given back"
            self.leader = answer.leader
            self._has_looked = False
            self._main.due = now + _GIVES_WAY_S
        else:
            self._has_appended(answer)

    def _has_read(self, answer: Entries, now: float) -> None:
        if answer.first > self.read + 1:
            self._end(
                f"the log begins with entry {answer.first}, and this server has only those up to"
                f" {self.read}",
                needs_rebuild=True,
            )
            return
        if self._is_new:
            self._is_new = False
            self._report_now(now)
        elif answer.entries:
            self.read = answer.entries[-1].number
            self.last = max(self.last, self.read)
            self._is_applying = True
            self._out.append(Apply(answer.entries))
        elif self.state == COMPLETING:
            assert self.leader is not None, "it was claimed"
            self._out.append(Begin(self.leader))
        else:
            self.last = self.read  # the log has no more, whatever was seen
            self._go_on(now)

    def _claimed(self, leader: Leader, now: float) -> None:
        """Begin to complete the store: from now on, only this server may append."""
        self.state = COMPLETING
        self.leader = leader
        self._kept_at = now
        self._keep.due = now + self._settings.lease_s / _KEPT_PER_LEASE
        self._go_on(now)

    def _has_appended(self, answer: LogAnswer) -> None:
        appending = self._appending
        assert appending is not None, "nothing else is asked"
        appending.answered(answer)
        if appending.state == FENCED:
            self._end(appending.reason)
            return
        assert appending.state != ASKING, "an answer settles it"
        entry = LogEntry(appending.request.number, appending.request.data)
        self.read = self.last = entry.number
        self._is_applying = True
        self._out.append(Apply([entry]))

    # -- the other lines ------------------------------------------------------------------------

    def _keep_answered(self, answer: LogAnswer, now: float) -> None:
        assert isinstance(answer, Led), "a claim that is kept has one kind of answer"
        mine, other = self.leader, answer.leader
        assert mine is not None, "it was claimed"
        if other is None or other.epoch != mine.epoch:
            by = "no server leads" if other is None else f"{other.node} leads"
            self._end(f"the claim has ended and {by}")
            return
        self._kept_at = now
        self._keep.due = now + self._settings.lease_s / _KEPT_PER_LEASE

    def _report_now(self, now: float) -> None:
        settings = self._settings
        self._reports += 1
        self._reported = self._carried
        self._reported_at = now
        member = Member(settings.node, settings.address, self._carried, self._reports)
        self._ask(self._report, Report(member))

    def _report_later(self, now: float) -> None:
        news = self._carried != self._reported
        wait_s = self._settings.report_s * (1 if news else 10)
        self._report.due = max(now, self._reported_at + wait_s)

    def _trim_answered(self, answer: LogAnswer, now: float) -> None:
        leader = self.leader
        assert leader is not None, "only a leader trims"
        if isinstance(answer, Fenced):
            self._end("the claim has ended")
            return
        if isinstance(answer, Members):
            self.members.learn(answer.members, now, answer.is_full)
            needed = self.members.needed(self._settings.node, self._carried, now)
            if needed > self._trimmed:
                self._ask(self._trim, Trim(leader.epoch, needed, answer.version))
                return
        else:
            assert isinstance(answer, Trimmed), "there is no other answer"
            self._trimmed = answer.first
        self._trim.due = now + self._settings.trim_s

    # -- helpers --------------------------------------------------------------------------------

    def _ask(self, line: _Line, request: LogRequest) -> None:
        line.request = request
        self._out.append(AskLog(request))

    def _line_of(self, request: LogRequest) -> _Line | None:
        for line in self._lines:
            if line.request is request:
                return line
        return None

    def _end(self, reason: str, *, needs_rebuild: bool = False) -> None:
        if self.state != ENDED:
            self.state = ENDED
            self._out.append(End(reason, needs_rebuild))
