"""Transactions: staging, commits, and the last committed epoch of each application.

Theory of operation.  Each of many producers pushes into a transaction; one of them, or another
client, commits all of them together under an application's name and an *epoch*. Pushed messages are
staged within limits and are not visible.  A transaction ends with a commit, an abort, a time
without a push, or the process; it does not end with the session that opened it.

*Staging.* Pushed messages are in memory, or staged by the storage (``holdings.py``); a push is
answered when everything of its transaction that was passed to the storage up to it is staged.  If
that fails, the transaction is broken and releases its contents.  A commit waits for requests in
progress.

*The commit* checks whether every queue has room for all messages, gives each message its sequence,
and passes the whole to the storage as one effect with one ticket: the messages and the *mark*,
which is the application's name and the epoch.  Its cost is proportional to the number of queues and
segments, not of messages, so a step stays short (docs/reliability.md, F8).  The storage saves all
or nothing.

*Nothing is visible before it is saved.* The messages are no longer in memory; they are in the
queue's tail, the part of it that is on disk only, which is read back only as far as the storage has
confirmed it, in portions.  The tail is opened at the commit and held open until the storage
answers, so that later messages are after it.

*At most once.* An epoch that is not newer than the mark is answered as committed.  An application
has at most one commit in progress: if the next one could overtake one that fails, its mark would
say that the failed one was committed.  A client that repeats the commit in progress waits for the
same answer.

*Failure.* A commit that cannot be saved is void as a whole: the counters are restored, the
transactions are open again, and the client is asked to retry.

Only queues that keep every message can take part: durable, with a status that stores, not a cache,
and without a handler that must be called for each message.  Producers and subscribers of events get
no notice of single messages.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_CONFLICT,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
    RESULT_UNAUTHORIZED,
)
from tmqp.names import fault_of_name
from tmqp_server.engine.books import mark_bytes, transaction_bytes
from tmqp_server.engine.commands import (
    AbortTransaction,
    Command,
    CommitTransaction,
    ListTransactions,
    MessageSet,
    OpenTransaction,
    PushTransaction,
    RestoreMark,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.delivery.pump import Pump
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import CommitPart, CommitStored, ForgetMark
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.channel_names import matches
from tmqp_server.engine.model.delivery import HOOK_RECEIVED, HOOK_SAVE
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import (
    BROKEN,
    COMMITTED,
    COMMITTING,
    OPEN,
    TransactionSnapshot,
)
from tmqp_server.engine.model.timers import Sleeper
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.transactions.holdings import Holdings
from tmqp_server.engine.transactions.staging import (
    CommittedQueue,
    Mark,
    PendingCommit,
    PendingStage,
    Staged,
    Transaction,
    any_under_way,
    gathered,
    hold_tails,
    release_tail,
)

__all__ = ["TransactionTimer", "Transactions"]

#: The timeout for clients that request none, if the limits allow it.
_DEFAULT_TIMEOUT_MS: Final = 600_000
#: Commits of one epoch that wait for the one that is in progress.
_MOST_WAITING: Final = 16
#: The most commits that wait for segments to be staged.
_MOST_LATE: Final = 256
#: The hooks of a handler that decides whether a message is accepted and saved.
_DECIDING: Final = HOOK_RECEIVED | HOOK_SAVE


class TransactionTimer(Sleeper):
    """Wakes the transactions when the time of one of them, or of a mark, is over."""

    __slots__ = ()


class Transactions:
    """Serves the commands of transactions."""

    __slots__ = (
        "timer",
        "_by_name",
        "_committing",
        "_core",
        "_directory",
        "_flights",
        "_holdings",
        "_last",
        "_late",
        "_marks",
        "_open",
        "_pump",
    )

    def __init__(self, core: Core, flights: Flights, directory: Directory, pump: Pump) -> None:
        self._core = core
        self._directory = directory
        self._flights = flights
        self._pump = pump
        self.timer = TransactionTimer()
        self._open: dict[int, Transaction] = {}
        core.tables["transactions"] = self._open
        #: Those with a part, by application, epoch, part and attempt.
        self._by_name: dict[tuple[str, int, int, int], Transaction] = {}
        self._last = 0
        self._holdings = Holdings(core)
        #: Commits that wait for segments to be staged.
        self._late: list[tuple[CommitTransaction, Session]] = []
        #: By application, the oldest commit first.
        self._marks: dict[str, Mark] = {}
        self._committing: dict[str, PendingCommit] = {}

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            OpenTransaction: self.open,
            PushTransaction: self.push,
            CommitTransaction: self.commit,
            AbortTransaction: self.abort,
            ListTransactions: self.list_transactions,
        }

    # --- Opening ---------------------------------------------------------------------------------

    def open(self, command: Command, session: Session) -> None:
        """Begin a transaction, unless its epoch is committed."""
        assert isinstance(command, OpenTransaction)
        core = self._core
        limits = core.limits
        timeout_ms = command.timeout_ms
        if not timeout_ms:
            timeout_ms = min(_DEFAULT_TIMEOUT_MS, limits.max_transaction_timeout_ms)
        code = self._problem_of_name(command.application, command.epoch)
        if code == RESULT_OK:
            mark = self._marks.get(command.application)
            if mark is not None and command.epoch <= mark.epoch:
                self._tell_committed(session, command.request, command.application, command.epoch)
                return
            if timeout_ms > limits.max_transaction_timeout_ms:
                code = core.reached("max_transaction_timeout_ms")
        name: tuple[str, int, int, int] | None = None
        older: Transaction | None = None
        if command.part is not None:
            name = (command.application, command.epoch, command.part, command.attempt)
            older = self._by_name.get(name)
        if code == RESULT_OK:
            if older is not None and older.state == COMMITTING:
                code = RESULT_CONFLICT
            elif older is None and len(self._open) >= limits.max_transactions:
                code = core.reached("max_transactions")
            elif older is None and not core.has_room(transaction_bytes(command.application)):
                code = core.no_room()
        if code != RESULT_OK:
            core.reply(session, command.request, code)
            return
        if older is not None:
            self._drop(older)
        core.charge(transaction_bytes(command.application))
        self._last += 1
        transaction = Transaction(self._last, command, timeout_ms / 1000)
        self._open[self._last] = transaction
        if name is not None:
            self._by_name[name] = transaction
        self._touch(transaction)
        core.reply(session, command.request, RESULT_OK, transaction.snapshot())

    def _problem_of_name(self, application: str, epoch: int) -> int:
        """0 if transactions of this application are possible, otherwise the result code."""
        core = self._core
        if not core.stores or core.takes_nodes or core.masters:
            # Other servers of a cluster would not learn of the commit.
            return RESULT_NOT_IMPLEMENTED
        size = len(application.encode("utf-8", "surrogatepass"))
        if not 0 < size <= core.limits.max_name_bytes or epoch < 0 or fault_of_name(application):
            return RESULT_BAD_REQUEST
        return RESULT_OK

    def _touch(self, transaction: Transaction) -> None:
        transaction.ends_at = self._core.now + transaction.timeout_s
        self._core.wakeups.arm(self.timer, transaction.ends_at)

    def _drop(self, transaction: Transaction) -> None:
        """Drop a transaction and its contents."""
        self._holdings.empty(transaction)
        self._core.refund(transaction_bytes(transaction.application))
        del self._open[transaction.number]
        if transaction.part is not None:
            name = (
                transaction.application,
                transaction.epoch,
                transaction.part,
                transaction.attempt,
            )
            del self._by_name[name]

    def _break(self, transaction: Transaction) -> None:
        """Mark a transaction that lacks messages as broken, and drop its contents."""
        transaction.state = BROKEN
        self._holdings.empty(transaction)

    # --- Pushing ---------------------------------------------------------------------------------

    def push(self, command: Command, session: Session) -> None:
        """Stage message sets, all or none."""
        assert isinstance(command, PushTransaction)
        core = self._core
        transaction = self._open.get(command.transaction)
        code = RESULT_OK
        if transaction is None or (
            command.application and command.application != transaction.application
        ):
            transaction = None
            code = RESULT_NOT_FOUND
        elif transaction.state != OPEN:
            code = RESULT_CONFLICT
        if transaction is None or code != RESULT_OK:
            core.reply(session, command.request, code)
            return
        queues: list[Queue] = []
        code = command.problem
        if code == RESULT_OK:
            code = self._problem_of_message_sets(transaction, command.message_sets, queues)
        if code != RESULT_OK:
            # The next push may be on its way: without this one, it must not be committed.
            self._break(transaction)
            core.reply(session, command.request, code)
            return
        for place in range(len(queues)):
            queue = queues[place]
            message_set = command.message_sets[place]
            self._holdings.add(transaction, queue, message_set)
            session.pushed += message_set.count
        self._touch(transaction)
        if transaction.latest is not None and queues:
            answer = (session, command.request, transaction.snapshot())
            transaction.latest.waiting.append(answer)
        else:
            core.reply(session, command.request, RESULT_OK, transaction.snapshot())

    def put_aside(self, pending: PendingStage, ok: bool) -> None:
        """Handle the storage's answer about a segment."""
        core = self._core
        transaction = pending.transaction
        transaction.under_way -= 1
        if transaction.latest is pending:
            transaction.latest = None
        is_there = self._open.get(transaction.number) is transaction and transaction.state == OPEN
        code = RESULT_BUSY if not ok else RESULT_OK if is_there else RESULT_CONFLICT
        if is_there:
            self._touch(transaction)
            if ok:
                self._holdings.is_aside(pending)
            else:
                self._break(transaction)
        for session, request, snapshot in pending.waiting:
            if session.alive:
                core.reply(session, request, code, snapshot if code == RESULT_OK else None)
        if not transaction.under_way and self._late:
            late, self._late = self._late, []
            for command, session in late:
                if session.alive:
                    self.commit(command, session)

    def _problem_of_message_sets(
        self, transaction: Transaction, message_sets: list[MessageSet], queues: list[Queue]
    ) -> int:
        """0 if all message sets can be staged; fills in their queues."""
        code = self._holdings.problem(transaction, message_sets)
        if code != RESULT_OK:
            return code
        most_queues = self._core.limits.max_queues_per_transaction
        new: dict[int, None] = {}
        for each in message_sets:
            queue = self._directory.open_queue(each.channel, each.queue_id, each.changes)
            if queue is None:
                return self._directory.problem
            code = self._problem_of_queue(queue, each.largest)
            if code != RESULT_OK:
                return code
            if queue.key not in transaction.staged:
                new[queue.key] = None
                if len(transaction.staged) + len(new) > most_queues:
                    return self._core.reached("max_queues_per_transaction")
            queues.append(queue)
        return RESULT_OK

    def _problem_of_queue(self, queue: Queue, largest: int) -> int:
        """0 if a queue accepts messages of transactions, otherwise the result code."""
        if queue.closed:
            return RESULT_NOT_FOUND
        if queue.discipline.refuses:
            return RESULT_UNAUTHORIZED
        if not queue.saves or queue.discipline.replaces:
            return RESULT_UNACCEPTABLE
        if queue.hooks & _DECIDING and (queue.receipt is None or queue.hooks & HOOK_SAVE):
            return RESULT_UNACCEPTABLE
        if largest > queue.size_cap:
            return RESULT_LIMIT_EXCEEDED
        return RESULT_OK

    # --- Committing ------------------------------------------------------------------------------

    def commit(self, command: Command, session: Session) -> None:
        """Push everything staged in some transactions, once."""
        assert isinstance(command, CommitTransaction)
        core = self._core
        application = command.application
        epoch = command.epoch
        code = self._problem_of_name(application, epoch)
        mark = self._marks.get(application)
        if code == RESULT_OK and mark is not None and epoch <= mark.epoch:
            self._tell_committed(session, command.request, application, epoch)
            return
        under_way = self._committing.get(application)
        if code == RESULT_OK and under_way is not None:
            if under_way.epoch == epoch and len(under_way.waiting) < _MOST_WAITING:
                under_way.waiting.append((session, command.request))
                return
            code = RESULT_BUSY
        named: list[Transaction] = []
        if code == RESULT_OK:
            code = self._problem_of_commit(command, named)
        if code == RESULT_OK and any_under_way(named):
            if len(self._late) < _MOST_LATE:
                self._late.append((command, session))
                return
            code = RESULT_BUSY
        whole: dict[int, Staged] = {}
        if code == RESULT_OK:
            whole = gathered(named)
            code = self._problem_of_whole(whole)
        marks = len(self._marks) + len(self._committing)
        if code == RESULT_OK and mark is None and marks >= core.limits.max_transaction_marks:
            code = core.reached("max_transaction_marks")
        if code == RESULT_OK and mark is None and not core.has_room(mark_bytes(application)):
            code = core.no_room()
        if code == RESULT_OK and not core.storage_ok:
            code = RESULT_BUSY
        if code != RESULT_OK:
            core.reply(session, command.request, code)
            return
        pending = PendingCommit(application, epoch, core.now, named)
        pending.waiting.append((session, command.request))
        self._begin(pending, whole)

    def _problem_of_commit(self, command: CommitTransaction, named: list[Transaction]) -> int:
        """0 if these transactions can be committed together; fills in *named*."""
        seen: dict[int, None] = {}
        parts: dict[int, None] = {}
        for place in range(len(command.transactions)):
            number = command.transactions[place]
            expected = command.counts[place]
            transaction = self._open.get(number)
            if transaction is None:
                return RESULT_NOT_FOUND
            part = transaction.part
            if (
                transaction.application != command.application
                or transaction.epoch != command.epoch
                or transaction.state != OPEN
                or number in seen
                or (part is not None and part in parts)
                or 0 <= expected != transaction.count
            ):
                return RESULT_CONFLICT
            seen[number] = None
            if part is not None:
                parts[part] = None
            named.append(transaction)
        return RESULT_OK

    def _problem_of_whole(self, whole: dict[int, Staged]) -> int:
        """0 if every queue can take all its messages, otherwise the result code."""
        for staged in whole.values():
            queue = staged.queue
            code = self._problem_of_queue(queue, staged.largest)
            if code != RESULT_OK:
                return code
            limit = queue.options.message_limit
            waiting = queue.waiting_count() + queue.spilled + len(queue.deferred) + queue.withheld
            if 0 < limit < waiting + staged.count:
                return RESULT_LIMIT_EXCEEDED
            if queue.disk_bytes + staged.size > queue.disk_cap:
                return RESULT_LIMIT_EXCEEDED
        return RESULT_OK

    def _begin(self, pending: PendingCommit, whole: dict[int, Staged]) -> None:
        """Update the accounts, and ask the storage to save the commit."""
        core = self._core
        now = core.now
        parts: list[CommitPart] = []
        for key, staged in whole.items():
            queue = staged.queue
            first = queue.sequence + 1
            last = queue.sequence + staged.count
            queue.sequence = last
            queue.appended = last
            self._flights.receive(queue, staged.count, now)
            self._flights.admit_on_disk(queue, staged.count)
            self._flights.store(queue, staged.size)
            entry = CommittedQueue(staged, last)
            hold_tails(self._flights, entry, first)
            pending.entries.append(entry)
            timeout_s = queue.message_timeout_s
            expires_at = now + timeout_s if timeout_s > 0.0 else NEVER
            parts.append(CommitPart(key, first, staged.count, staged.segments, expires_at))
        for transaction in pending.transactions:
            transaction.state = COMMITTING
        self._committing[pending.application] = pending
        core.last_ticket += 1
        core.tickets[core.last_ticket] = pending
        effect = CommitStored(pending.application, pending.epoch, now, parts)
        effect.ticket = core.last_ticket
        core.out.append(effect)

    def synced(self, pending: PendingCommit, ok: bool) -> None:
        """Handle the storage's answer about a commit."""
        core = self._core
        del self._committing[pending.application]
        for entry in pending.entries:
            queue = entry.queue
            if queue.closed:
                continue
            if ok:
                self._flights.save(queue, entry.count)
                core.became_safe(queue, entry.last)
            release_tail(self._flights, entry, True, ok)
            release_tail(self._flights, entry, False, ok)
            core.refill(queue)
            self._pump.resume(queue, core.now)
            core.release_pull(queue)
        if ok:
            self._committed(pending)
        else:
            for transaction in pending.transactions:
                transaction.state = OPEN
                self._touch(transaction)
        count = 0
        size = 0
        for transaction in pending.transactions:
            count += transaction.count
            size += transaction.size
        for session, request in pending.waiting:
            if not session.alive:
                continue
            if ok:
                self._tell_committed(
                    session, request, pending.application, pending.epoch, count, size
                )
            else:
                core.reply(session, request, RESULT_BUSY)

    def _committed(self, pending: PendingCommit) -> None:
        """Record the epoch, and drop the application's transactions up to this epoch."""
        application = pending.application
        if self._marks.pop(application, None) is None:  # the newest is last
            self._core.charge(mark_bytes(application))
        self._marks[application] = Mark(pending.epoch, pending.at)
        self._arm_marks()
        for transaction in list(self._open.values()):
            if transaction.application == application and transaction.epoch <= pending.epoch:
                self._drop(transaction)

    def _tell_committed(
        self,
        session: Session,
        request: object,
        application: str,
        epoch: int,
        count: int = 0,
        size: int = 0,
    ) -> None:
        mark = self._marks[application]
        body = TransactionSnapshot(0, application, epoch, None, 0, COMMITTED, count, size, mark.at)
        self._core.reply(session, request, RESULT_OK, body)

    # --- Giving up -------------------------------------------------------------------------------

    def abort(self, command: Command, session: Session) -> None:
        """Abort one transaction, or those of an epoch."""
        assert isinstance(command, AbortTransaction)
        named: list[Transaction] = []
        code = RESULT_OK
        if command.transaction is not None:
            transaction = self._open.get(command.transaction)
            if transaction is None or (
                command.application and command.application != transaction.application
            ):
                code = RESULT_NOT_FOUND
            else:
                named.append(transaction)
        else:
            for transaction in self._open.values():
                if (
                    transaction.application == command.application
                    and transaction.epoch == command.epoch
                ):
                    named.append(transaction)
        for transaction in named:
            if transaction.state == COMMITTING:
                code = RESULT_CONFLICT
            else:
                self._drop(transaction)
        self._core.reply(session, command.request, code)

    def wake(self) -> None:
        """Abort transactions whose time is over, and drop old marks."""
        core = self._core
        now = core.now
        soonest = NEVER
        for transaction in list(self._open.values()):
            if transaction.state == COMMITTING:
                continue  # armed again if that fails
            if transaction.ends_at <= now:
                core.budget -= 1
                self._drop(transaction)
            else:
                soonest = min(soonest, transaction.ends_at)
        while self._marks and core.budget > 0:
            application = next(iter(self._marks))
            if self._mark_ends(application) > now:
                break
            core.budget -= 1
            del self._marks[application]
            core.refund(mark_bytes(application))
            core.keep(ForgetMark(application))
        core.wakeups.arm(self.timer, soonest)
        self._arm_marks()

    def _mark_ends(self, application: str) -> float:
        return self._marks[application].at + self._core.limits.max_mark_age_ms / 1000

    def _arm_marks(self) -> None:
        if self._marks:
            ends_at = self._mark_ends(next(iter(self._marks)))
            self._core.wakeups.arm(self.timer, ends_at)

    # --- Looking ---------------------------------------------------------------------------------

    def list_transactions(self, command: Command, session: Session) -> None:
        """List the open transactions and the last epochs."""
        assert isinstance(command, ListTransactions)
        body: list[TransactionSnapshot] = []
        self._core.charge_names(len(self._open) + len(self._marks))
        for transaction in self._open.values():
            if matches(transaction.application, command.filter):
                body.append(transaction.snapshot())
        for application, mark in self._marks.items():
            if matches(application, command.filter):
                body.append(
                    TransactionSnapshot(
                        0, application, mark.epoch, None, 0, COMMITTED, 0, 0, mark.at
                    )
                )
        self._core.work += len(body)
        self._core.reply(session, command.request, RESULT_OK, body)

    def restore(self, command: RestoreMark) -> None:
        """Restore the last commit of an application."""
        if command.application not in self._marks:
            self._core.charge(mark_bytes(command.application))
        self._marks[command.application] = Mark(command.epoch, command.at)
        self._arm_marks()
