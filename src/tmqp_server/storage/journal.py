"""The journal: collects everything that the engine wants stored into the next batch for the store.

Theory of operation.  Effects arrive in the order in which the engine made them; each becomes a part
of the batch that is being collected.  ``take`` returns that batch and begins the next; ``finished``
reports the result.  One batch is written at a time, so effects that arrive meanwhile are in the
next one: many messages share one sync, and none waits for others to arrive.

Every ``Append`` and every topology effect has a ticket, and tickets are consecutive, so that one
answer serves a batch.  If a batch fails, its messages are void: their producers are notified.
Everything else (changes, settled messages, notes) must still be written and is the first part of
the next batch; except the settlement of older copies by a newer one, the settlements of a client's
batch, and the mark of a commit, which are void with the messages that they belong to.

A commit is one effect and so part of one batch, as a whole.  The store's own thread creates its
messages when it writes them; messages that are appended to their queues from then on are after
them.

The bodies that a transaction stages before its commit are written in the same way, in the engine's
order: they exist before the commit that names them, and are deleted after the effect that drops
them.

A message that is appended and settled within one batch is not written, unless its queue retains
settled messages; its door's body is not even made if it is settled immediately (``forms``).  If its
producer need not wait for the storage then (``done_confirms``), it does not wait.  Queues whose
messages were settled before they were saved are *hasty*: the next ones may never have to be
written.

It does no I/O. The door decides about the stored form of its messages (``BodyCodec``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from tmqp.blocks import FLAG_HIGH, FLAG_TRANSIENT, StoredMessage
from tmqp_server.engine.commands import Synced
from tmqp_server.engine.effects import (
    Append,
    AppendRun,
    ClearStored,
    CommitBatch,
    CommitStored,
    DropStaged,
    Erase,
    EraseRun,
    ForgetChannel,
    ForgetCursors,
    ForgetMark,
    ForgetQueue,
    ForgetRouter,
    StageSegment,
    StoreChannel,
    StoreCursors,
    StoredChange,
    StoreQueue,
    StoreRouter,
)
from tmqp_server.engine.model.message import MARK_DONE_CONFIRMS
from tmqp_server.storage.forms import LAST, MAX_COUNT, StoredForms
from tmqp_server.storage.gathered import (
    BodyCodec,
    CommittedSegment,
    Gathered,
    Sealed,
    SetAside,
)
from tmqp_server.storage.port import (
    HIGH_ONLY,
    REGULAR_ONLY,
    DropChannel,
    DropCursor,
    DropMark,
    DropQueue,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Note,
    SettleAll,
    StagedBody,
    StoreBatch,
    TopologyChange,
)
from tmqp_server.storage.stored_runs import StoredRun, find_run, unrolled
from tmqp_server.storage.topology import (
    channel_to_bytes,
    queue_to_bytes,
    retention_of,
    router_to_bytes,
)

__all__ = ["Journal", "Writing"]


class Writing:
    """A batch that is being written, and the tickets that it answers: ``first`` and ``count``.

    ``runs`` are the tickets that stand for several messages, in order, each with its number of
    messages.  ``changes`` are those changes of the batch that do not depend on its messages.
    """

    __slots__ = ("batch", "changes", "count", "first", "replaced", "runs")

    def __init__(
        self,
        batch: StoreBatch,
        first: int,
        count: int,
        runs: list[tuple[int, int]],
        replaced: list[tuple[int, int]],
        changes: list[TopologyChange],
    ) -> None:
        self.batch = batch
        self.changes = changes
        self.first = first
        self.count = count
        self.runs = runs
        #: Older copies that are settled with their newer ones: key and sequence.
        self.replaced = replaced


@final
class Journal(StoredForms):
    """Collects the next batch for the store.

    :param doors: all protocols whose messages may be stored.
    :param wall_clock_offset_s: seconds to add to the engine's time to get Unix time.
    """

    def __init__(self, doors: Sequence[BodyCodec], wall_clock_offset_s: float = 0.0) -> None:
        super().__init__(doors, wall_clock_offset_s)
        self._retained: dict[int, None] = {}
        self._changes: list[TopologyChange] = []
        self._appended: dict[int, dict[int, StoredMessage]] = {}
        #: Runs that were appended and are kept in one piece.
        self._whole: dict[int, list[StoredRun]] = {}
        self._portions: list[Gathered] = []
        #: Queues that have portions: messages appended to them come after these.
        self._sealed: dict[int, None] = {}
        self._marks: list[TopologyChange] = []
        self._settled: dict[int, list[int]] = {}
        #: The staged bodies of transactions, and the numbers of those that are no longer needed.
        self._staged: dict[int, StagedBody] = {}
        self._dropped: list[int] = []
        self._replaced: list[tuple[int, int]] = []
        self._notes: list[Note] = []
        self._first = 0
        self._count = 0
        #: Tickets that stand for several messages, and for how many.
        self._runs: list[tuple[int, int]] = []
        #: How many more messages than tickets there are.
        self._more = 0
        #: Tickets that nobody waits for once their messages are settled; how many of them are.
        self._patient: dict[int, None] = {}
        self._done = 0
        #: The last ticket that was answered, and the last one that has been looked at.
        self._answered = 0
        self._seen = 0
        self._hasty: dict[int, None] = {}

    @property
    def waiting(self) -> int:
        """How many messages wait to be written; 0 if something urgent waits as well."""
        if self._changes or self._notes or self._marks:
            return 0
        return self._count + self._more - self._done

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write and nobody to answer."""
        return not (self._count or self._settled or self._changes or self._notes or self._dropped)

    @property
    def is_urgent(self) -> bool:
        """Whether there is more to write than settlements."""
        return bool(self._count > self._done or self._changes or self._notes)

    @property
    def is_done(self) -> bool:
        """Whether there are only messages that are settled and that no producer waits for, and
        nothing else to write.
        """
        if self._count == 0 or self._count > self._done or not self._is_plain:
            return False
        return not any(list(self._appended.values()))

    @property
    def _is_plain(self) -> bool:
        """Whether there is nothing to write except messages that were appended one by one."""
        return not (
            self._changes
            or self._marks
            or self._settled
            or self._notes
            or self._dropped
            or self._replaced
            or self._portions
            or self._staged
            or self._whole
        )

    @property
    def may_be_done(self) -> bool:
        """Whether :attr:`is_done` may soon be true: everything left is of that kind, and of hasty
        queues.
        """
        if not self._patient or len(self._patient) < self._count - self._done:
            return False
        return all([key in self._hasty or not there for key, there in self._appended.items()])

    def has_moved(self) -> bool:
        """Whether such messages have arrived since the last call; if not, their queues are no
        longer hasty.
        """
        seen, self._seen = self._seen, self._first + self._count - 1
        if next(iter(self._patient)) > seen:
            return True
        for key in self._appended:
            self._hasty.pop(key, None)
        return False

    def retains(self, key: int, is_so: bool) -> None:
        """Set whether a queue keeps settled messages for readers."""
        if is_so:
            self._retained[key] = None
        else:
            self._retained.pop(key, None)

    # -- what the engine says -------------------------------------------------------------------

    def append(self, effect: Append, now: float) -> None:
        """Add a message to the batch."""
        message = effect.message
        flags = self._flags(message)
        if effect.transient:
            flags |= FLAG_TRANSIENT
        timestamp_us = self._unix_us(now)
        kept = self._bare_form(message, effect.sequence, flags, timestamp_us, now)
        appended = self._appended.get(effect.key)
        if appended is None:
            self._appended[effect.key] = {effect.sequence: kept}
        else:
            appended[effect.sequence] = kept
        if effect.old:
            self._replaced.append((effect.old_key, effect.old))
        elif message.marks & MARK_DONE_CONFIRMS:
            self._patient[effect.ticket] = None
        self._ticket(effect.ticket)

    def run(self, effect: AppendRun | EraseRun, now: float) -> None:
        """Add the messages of a run to the batch, or settle them."""
        if isinstance(effect, EraseRun):
            self._erase_run(effect)
        else:
            self._append_run(effect, now)

    def _append_run(self, effect: AppendRun, now: float) -> None:
        flags = self._flags(effect.messages[0])
        timestamp_us = self._unix_us(now)
        if not self._append_whole(effect, flags, timestamp_us):
            appended = self._appended.get(effect.key)
            if appended is None:
                appended = self._appended[effect.key] = {}
            sequence = effect.sequence
            for message in effect.messages:
                appended[sequence] = self._stored(message, sequence, flags, timestamp_us, now)
                sequence += 1
        count = len(effect.messages)
        self._runs.append((effect.ticket, count))
        self._more += count - 1
        self._ticket(effect.ticket)

    def _append_whole(self, effect: AppendRun, flags: int, timestamp_us: int) -> bool:
        """Add a run as one piece.  Return False if a message of it needs a form of its own."""
        messages = effect.messages
        attempts = messages[0].attempts
        for message in messages:
            if message.rare is not None or message.attempts != attempts:
                return False
        found = effect.run.wire.stored()
        if found is None or attempts > MAX_COUNT:
            return False
        bodies, sizes, offsets = found
        first, count = effect.sequence, len(messages)
        run = StoredRun(first, count, timestamp_us, flags, attempts, bodies, sizes, offsets)
        runs = self._whole.get(effect.key)
        if runs is None:
            self._whole[effect.key] = [run]
        else:
            runs.append(run)
        return True

    def _divide(self, key: int) -> None:
        """Divide the runs that were appended to a queue into single messages."""
        runs = self._whole.pop(key, None)
        if runs is None:
            return
        messages = unrolled(list(self._appended.get(key, {}).values()), runs)
        self._appended[key] = {each.sequence: each for each in messages}

    def _erase_run(self, effect: EraseRun) -> None:
        key = effect.key
        others = effect.sequences
        appended = self._appended.get(key)
        runs = self._whole.get(key)
        if (appended or runs) and key not in self._retained:
            others = []
            run: StoredRun | None = None
            for sequence in effect.sequences:
                if runs is not None:
                    if run is None or sequence < run.first or sequence > run.last:
                        run = find_run(runs, sequence)
                    if run is not None:
                        run.settle(sequence)
                        continue
                kept = None if not appended else appended.pop(sequence, None)
                if kept is None:
                    others.append(sequence)
                else:
                    self._forget_form(kept)
        if others:
            settled = self._settled.get(key)
            if settled is None:
                self._settled[key] = list(others)
            else:
                settled.extend(others)

    def erase(self, effect: Erase) -> None:
        """Settle a message."""
        key = effect.key
        if key not in self._retained:
            if effect.ticket > self._answered:
                self._hasty[key] = None
            appended = self._appended.get(key)
            kept = None if appended is None else appended.pop(effect.sequence, None)
            if kept is not None:
                self._forget_form(kept)
                if effect.ticket in self._patient:
                    del self._patient[effect.ticket]
                    self._done += 1
                return
            runs = self._whole.get(key)
            run = None if runs is None else find_run(runs, effect.sequence)
            if run is not None:
                run.settle(effect.sequence)
                return
        if effect.depends:
            self._replaced.append((key, effect.sequence))
            return
        settled = self._settled.get(key)
        if settled is None:
            self._settled[key] = [effect.sequence]
        else:
            settled.append(effect.sequence)

    def change(self, effect: StoredChange) -> None:
        """Add a change of topology, the settlement of a part of a queue, or a commit."""
        if isinstance(effect, StoreChannel):
            self._changes.append(KeepChannel(effect.channel, channel_to_bytes(effect.options)))
        elif isinstance(effect, ForgetChannel):
            self._changes.append(DropChannel(effect.channel))
        elif isinstance(effect, StoreQueue):
            retention = retention_of(effect.options)
            self.retains(effect.key, effect.options.retains())
            options = queue_to_bytes(effect.options, effect.suspect, effect.feeds)
            self._changes.append(
                KeepQueue(effect.key, effect.channel, effect.queue_id, options, retention)
            )
        elif isinstance(effect, ForgetQueue):
            self._appended.pop(effect.key, None)
            self._whole.pop(effect.key, None)
            self._portions = [each for each in self._portions if each.key != effect.key]
            self._settled.pop(effect.key, None)
            self._hasty.pop(effect.key, None)
            self.retains(effect.key, False)
            self._changes.append(DropQueue(effect.key))
        elif isinstance(effect, StoreRouter):
            value = router_to_bytes(effect.method, effect.bindings, effect.enabled)
            self._changes.append(KeepRouter(effect.router, value))
        elif isinstance(effect, ForgetRouter):
            self._changes.append(DropRouter(effect.router))
        elif isinstance(effect, StoreCursors):
            for at in range(len(effect.keys)):
                cursor = KeepCursor(effect.cursor, effect.keys[at], effect.sequences[at])
                self._changes.append(cursor)
        elif isinstance(effect, ForgetCursors):
            for key in effect.keys:
                self._changes.append(DropCursor(effect.cursor, key))
        elif isinstance(effect, CommitStored):
            self._commit(effect)
        elif isinstance(effect, CommitBatch):
            self._commit_batch(effect)
        elif isinstance(effect, StageSegment):
            self._staged[effect.number] = SetAside(self._by_name, effect.segment)
        elif isinstance(effect, DropStaged):
            self._dropped.extend(effect.numbers)
        elif isinstance(effect, ForgetMark):
            self._changes.append(DropMark(effect.application))
        else:
            assert isinstance(effect, ClearStored)
            self._clear(effect)
        if effect.ticket:
            self._ticket(effect.ticket)

    def _commit(self, effect: CommitStored) -> None:
        """Add a whole commit and its mark; because this is one call, they are in the same batch."""
        timestamp_us = self._unix_us(effect.at)
        for part in effect.parts:
            key = part.key
            self._seal(key)
            self._sealed[key] = None
            expires_us = self._expiry_us(part.expires_at)
            first = part.first
            for segment in part.segments:
                portion = CommittedSegment(
                    key, self._by_name, segment, first, timestamp_us, expires_us
                )
                self._portions.append(portion)
                first += segment.count
        self._marks.append(KeepMark(effect.application, effect.epoch, timestamp_us))

    def _commit_batch(self, effect: CommitBatch) -> None:
        """Add what a client's batch pushes and settles; if writing fails, all of it is void."""
        at = effect.at
        timestamp_us = self._unix_us(at)
        for each in effect.appended:
            message = each.message
            appended = self._appended.setdefault(each.key, {})
            appended[each.sequence] = self._stored(
                message, each.sequence, self._flags(message), timestamp_us, at
            )
        for erased in effect.erased:
            self._replaced.append((erased.key, erased.sequence))

    def _seal(self, key: int) -> None:
        """Make the messages appended to a queue a portion, after its other portions and before the
        next.
        """
        self._divide(key)
        appended = self._appended.pop(key, None)
        if appended:
            self._portions.append(Sealed(key, list(appended.values())))

    def _clear(self, effect: ClearStored) -> None:
        """Settle a part of a queue.  Changes are made before messages are appended, so the messages
        of this batch are settled one by one.
        """
        self._divide(effect.key)
        wanted = FLAG_HIGH if effect.high_priority else 0
        for sequence, kept in list(self._appended.get(effect.key, {}).items()):
            if effect.first <= sequence <= effect.last and kept.flags & FLAG_HIGH == wanted:
                self.erase(Erase(0, effect.key, sequence))
        for portion in self._portions:
            if portion.key == effect.key:
                within = portion.within(effect.first, effect.last, effect.high_priority)
                self._settled.setdefault(effect.key, []).extend(within)
        priority = HIGH_ONLY if effect.high_priority else REGULAR_ONLY
        self._changes.append(SettleAll(effect.key, effect.last, priority, effect.first))

    def notes(self, notes: Iterable[tuple[int, int, int, int]]) -> None:
        """Note what happened to messages: key, sequence, attempts and put-backs of each."""
        for key, sequence, attempts, put_backs in notes:
            self._divide(key)
            appended = self._appended.get(key, {}).get(sequence)
            if appended is not None:
                appended.attempts = min(attempts, MAX_COUNT)
                appended.put_backs = min(put_backs, MAX_COUNT)
                continue
            note = Note(key, sequence, min(attempts, MAX_COUNT), min(put_backs, MAX_COUNT))
            self._notes.append(note)

    def _ticket(self, ticket: int) -> None:
        if self._count == 0:
            self._first = ticket
        assert ticket == self._first + self._count, "tickets follow one another"
        self._count += 1

    # -- what the store says --------------------------------------------------------------------

    def take(self) -> Writing:
        """Return the collected batch, and begin the next one."""
        self._make_bodies()
        batch = StoreBatch()
        batch.changes = self._changes + self._marks
        for key in self._sealed:
            self._seal(key)
        for key, appended in self._appended.items():
            if appended:
                batch.appended[key] = list(appended.values())
        batch.portions.extend(self._portions)
        batch.settled = self._settled
        for key, whole in self._whole.items():
            self._take_runs(batch, key, whole)
        for key, sequence in self._replaced:
            batch.settled.setdefault(key, []).append(sequence)
        batch.notes = self._notes
        batch.staged = self._staged
        batch.dropped = self._dropped
        writing = Writing(
            batch, self._first, self._count, self._runs, self._replaced, self._changes
        )
        self._changes = []
        self._portions = []
        self._sealed = {}
        self._marks = []
        self._appended = {}
        self._whole = {}
        self._settled = {}
        self._staged = {}
        self._dropped = []
        self._replaced = []
        self._notes = []
        self._runs = []
        self._more = 0
        self._count = 0
        self._patient = {}
        self._done = 0
        return writing

    def _take_runs(self, batch: StoreBatch, key: int, whole: list[StoredRun]) -> None:
        """Add runs to a batch.  A run that is settled is left out; one that is partly settled is
        written whole, with its settlements.
        """
        runs: list[StoredRun] = []
        for run in whole:
            if run.is_over:
                continue
            runs.append(run)
            settled = run.settled()
            if settled:
                batch.settled.setdefault(key, []).extend(settled)
        if runs:
            batch.runs[key] = runs

    def finished(self, writing: Writing, ok: bool) -> Synced | None:
        """Note the result of writing a batch.  Return the answer to the engine, None if it has no
        tickets.
        """
        if not ok:
            self._owe(writing)
        if not writing.count:
            return None
        self._answered = writing.first + writing.count - 1
        return Synced(writing.first, ok, writing.count)

    def answers(self, writing: Writing, ok: bool, most: int) -> list[Synced]:
        """As :meth:`finished`, but with an answer for about every *most* messages."""
        whole = self.finished(writing, ok)
        if whole is None:
            return []
        found: list[Synced] = []
        first = at = whole.ticket
        end = first + whole.count
        weight = 0
        for ticket, count in [*writing.runs, (end, 0)]:
            while ticket - at >= most - weight:
                at += most - weight
                found.append(Synced(first, ok, at - first))
                first = at
                weight = 0
            weight += ticket - at + count
            at = min(ticket + 1, end)
            if weight >= most or (at == end and at > first):
                found.append(Synced(first, ok, at - first))
                first = at
                weight = 0
        return found

    def _owe(self, writing: Writing) -> None:
        batch = writing.batch
        self._changes = writing.changes + self._changes
        self._notes = batch.notes + self._notes
        self._dropped = batch.dropped + self._dropped
        for key, sequence in writing.replaced:
            batch.settled[key].remove(sequence)
        void = {key: {each.sequence for each in batch.appended[key]} for key in batch.appended}
        for key, runs in batch.runs.items():
            there = void.setdefault(key, set())
            for run in runs:
                there.update(range(run.first, run.last + 1))
        for portion in batch.portions:
            # Few are settled before they are safe: only those of a queue that was cleared.
            if portion.key in batch.settled:
                there = void.setdefault(portion.key, set())
                assert isinstance(portion, Gathered), "the journal made it"
                there.update(portion.within(0, LAST, True))
                there.update(portion.within(0, LAST, False))
        for key, sequences in batch.settled.items():
            gone = void.get(key)
            owed = [each for each in sequences if gone is None or each not in gone]
            if owed:
                self._settled[key] = owed + self._settled.get(key, [])
