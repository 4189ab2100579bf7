"""A simulated server of a group: the product's life and store, and clients that it answers.

Theory of operation.  The server does what its :class:`Life` wants, and tells it what came of that.
While it leads it writes what clients ask for, one batch at a time, each the way the product's store
does: prepare, append every entry, commit, answer.  It may freeze, so that all that happens to it
waits, and it may crash at any moment; then it begins again with what its disk has.

Its clock drifts; nothing but its own deadlines is measured by it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from tmqp_server.replication.appending import ASKING, DONE, Appending
from tmqp_server.replication.effects import Apply, AskLog, Begin, End, Lead, LifeEffect
from tmqp_server.replication.life import (
    ENDED,
    LEADER,
    STANDBY,
    Life,
    LifeSettings,
)
from tmqp_server.storage.log import (
    Claim,
    Keep,
    Leader,
    LogAnswer,
    LogEntry,
    LogRequest,
    Resign,
    WatchLog,
)
from tmqp_server.storage.port import DamageError, StoreBatch
from tmqp_server.storage.replicated import GroupError
from tmqp_sim.replicas.links import Link
from tmqp_sim.replicas.log_server import LogServer
from tmqp_sim.replicas.stores import Disk, SimStore, digest_of
from tmqp_sim.world import Violation, World

__all__ = ["EPOCH_US", "Around", "Node", "Wanted"]

#: The wall clock at the beginning, in microseconds of Unix time.
EPOCH_US: Final = 1_700_000_000_000_000
#: By how much a deadline may be missed, in seconds of the server's own clock.
_LATE_S: Final = 0.02
_RETURNS_S: Final = 1.0


class Around(Protocol):
    """What a server has around it: its group."""

    world: World
    log: LogServer
    most_entry_bytes: int
    lease_s: float
    watch_s: float
    forget_s: float
    carries: float

    def crashes_now(self, node: Node) -> bool:
        """Whether a server crashes before it does what comes next."""

    def compare(self, name: str, number: int, digest: str) -> None:
        """A server has a digest at a number."""

    def leads(self, node: Node, leader: Leader) -> None:
        """A server begins to lead."""

    def lost_too_much(self, node: Node, reason: str) -> None:
        """The log does not have any more what a server needs."""


class Wanted:
    """What clients want written: makes a batch for the store, and is told when it is safe."""

    def make(self, node: Node) -> StoreBatch | None:
        """The batch; None when there is nothing to write."""
        raise NotImplementedError

    def done(self, node: Node) -> None:
        """It is in the log, and the server's answers are on their way."""
        raise NotImplementedError


class Node:
    """A server.

    Attributes: ``serves``, whether clients are let in; ``life`` and ``store`` of its process, or
    of the last one that ended; ``is_up``.
    """

    def __init__(self, group: Around, name: str, link: Link, drift: float) -> None:
        self.group = group
        self.name = name
        self.link = link
        self.disk = Disk(f"store of {name}")
        self.serves = False
        self.is_up = False
        self.frozen_until = 0.0
        self.lives = 0
        self.needs_rebuild = False
        self.wall_error_us = 0
        self.life: Life
        self.store: SimStore
        self._drift = drift
        self._random = group.world.child(f"node {name}")
        self._effects: list[LifeEffect] = []
        self._wanted: deque[Wanted] = deque()
        self._writing: Wanted | None = None
        self._held: list[Callable[[], None]] = []
        self._kept_at = 0.0
        self._alarm_at = math.inf

    # -- time -----------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The server's own clock, in seconds."""
        return self.group.world.now * self._drift

    @property
    def now_us(self) -> int:
        """Its wall clock, which need not be right, in microseconds of Unix time."""
        return EPOCH_US + self.wall_error_us + int(self.group.world.now * 1_000_000)

    def _later(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Have something happen in this life."""
        self.group.world.after(delay_s, self.hear, self.lives, lambda: call(*args))

    def hear(self, life: int, call: Callable[[], None]) -> None:
        """Something happens to a life of the server: at once, or when it is not frozen any more."""
        if life != self.lives or not self.is_up:
            return
        if self.group.world.now < self.frozen_until:
            self._held.append(call)
            return
        self._check_promptness()
        call()
        self._perform()

    def freeze(self, seconds: float) -> None:
        """Stop for a while."""
        if self.is_up:
            self.group.world.mark("a server froze")
            self.frozen_until = self.group.world.now + seconds
            self.group.world.after(seconds, self._thaw, self.lives)

    def _thaw(self, life: int) -> None:
        if life == self.lives and self.is_up:
            held, self._held = self._held, []
            self._kept_at = max(self._kept_at, self.now - self.group.lease_s)
            for call in held:
                self.hear(life, call)
            self.hear(life, lambda: self._on_time(self._alarm_at))

    # -- lives ----------------------------------------------------------------------------------

    def boot(self) -> None:
        """A process begins."""
        if self.is_up or self.needs_rebuild:
            return
        self.lives += 1
        self.is_up = True
        self.frozen_until = 0.0
        self._held = []
        self._effects = []
        self._wanted.clear()
        self._writing = None
        self._kept_at = self.now
        self._alarm_at = math.inf
        group = self.group
        self.store = SimStore(self.disk, group.most_entry_bytes)
        settings = LifeSettings(
            self.name,
            f"tmqp://{self.name}",
            group.lease_s,
            watch_s=group.watch_s,
            report_s=0.3,
            trim_s=1.0,
            forget_s=group.forget_s,
        )
        token = f"{self.name}, life {self.lives}"
        self.life = Life(settings, token, self.disk.number, self._effects)
        self.life.start(self.now)
        self._later(0.2, self._carry)
        self._perform()

    def crash(self) -> None:
        """The process is gone, and what its disk does not have."""
        if self.is_up:
            self.group.world.note("crash", self.name)
            if self.serves:
                self.group.world.mark("a leader crashed")
            if self._writing is not None:
                self.group.world.mark("a leader crashed while it wrote")
        self.is_up = self.serves = False
        self._held = []

    def stop(self) -> None:
        """Stop in order: what is out is written, then the log gets the end entry."""
        if self.is_up and self.serves and self._writing is None:
            entry = self.store.writes.end(self.now_us)
            self.serves = False
            self._append([entry], lambda: self._stopped(entry))
        elif self.is_up and not self.serves:
            self.life.stop()
            self._perform()

    def _stopped(self, entry: LogEntry) -> None:
        self._took([entry])
        self.store.carry()
        self.life.stop()
        self.group.world.mark("a leader stopped in order")

    # -- what the life wants --------------------------------------------------------------------

    def _perform(self) -> None:
        while self._effects and self.is_up:
            effect = self._effects.pop(0)
            if self._crashes():
                return
            if isinstance(effect, AskLog):
                self._ask(effect.request)
            elif isinstance(effect, Apply):
                self._later(self._random.random() * 0.01, self._apply, effect.entries)
            elif isinstance(effect, Begin):
                writes = self.store.writes
                epoch = effect.leader.epoch
                entry = writes.begin(epoch, self.name, f"tmqp://{self.name}", self.now_us)
                self.life.begin(entry, self.now)
            elif isinstance(effect, Lead):
                self._lead(effect)
            else:
                assert isinstance(effect, End), "every effect is carried out"
                self._end(effect)
                return
        self._set_alarm()

    def _set_alarm(self) -> None:
        due = self.life.due()
        if self.is_up and due < self._alarm_at:
            self._alarm_at = due
            when = due / self._drift + 0.000_1
            self.group.world.at(when, self.hear, self.lives, lambda: self._on_time(due))

    def _on_time(self, due: float) -> None:
        """An alarm rings: the last one that was set, or one before it, for which another stands."""
        if due == self._alarm_at:
            self._alarm_at = math.inf
        if self.now >= self.life.due():
            self.life.on_deadline(self.now)

    def _ask(self, request: LogRequest) -> None:
        life = self.lives
        if isinstance(request, Resign) and self.life.state == STANDBY:
            self.group.world.mark("a server gave back the claim of its earlier life")
        self.link.ask(
            request,
            lambda answer: self.hear(life, lambda: self._answered(request, answer)),
            lambda: self.hear(life, lambda: self.life.unanswered(request, self.now)),
        )

    def _answered(self, request: LogRequest, answer: LogAnswer) -> None:
        if isinstance(request, (Claim, Keep, WatchLog)):
            self._kept_at = self.now
        self.life.answered(request, answer, self.now)

    def _check_promptness(self) -> None:
        """A leader that cannot keep its claim ends in time."""
        if self.serves and self.life.state == LEADER:
            silent_s = self.now - self._kept_at
            if silent_s > self.group.lease_s + _LATE_S:
                raise Violation(
                    "promptness", f"{self.name} leads {silent_s:.3f} s after it kept its claim"
                )

    def _apply(self, entries: list[LogEntry]) -> None:
        self.disk.has_joined = True
        self._take(entries)
        if self._random.random() < self.group.carries:
            self.store.carry()
        self.life.applied(self.disk.number, self.now)

    def _take(self, entries: list[LogEntry]) -> None:
        for entry in entries:
            try:
                self.store.writes.take([entry])
            except DamageError as error:
                raise Violation("log", f"{self.name} cannot read it: {error}") from None
            except GroupError as error:
                raise Violation("identity", f"{self.name}: {error}") from None
            self._took([entry])

    def _took(self, entries: list[LogEntry]) -> None:
        """The store has these entries, and all before them."""
        for entry in entries:
            if self.group.log.history.get(entry.number) != entry.data:
                text = f"{self.name} keeps entry {entry.number}, which is not there"
                raise Violation("log", text)
        if self.store.writes.applied == entries[-1].number:
            self.group.compare(self.name, entries[-1].number, digest_of(self.store.memory))

    def _lead(self, effect: Lead) -> None:
        self.group.leads(self, effect.leader)
        self.store.memory.recover()
        self.serves = True

    def _carry(self) -> None:
        """From time to time, what is in memory comes to the disk."""
        if self.life.state != ENDED:
            if self._writing is None:
                self.life.carried(self.store.carry(), self.now)
            self._later(0.2 + 2.0 * self._random.random(), self._carry)

    def _end(self, effect: End) -> None:
        self.group.world.note("end", self.name, effect.reason)
        self.group.world.mark("a life ended")
        self.is_up = self.serves = False
        if effect.needs_rebuild:
            self.needs_rebuild = True
            self.group.lost_too_much(self, effect.reason)
            return
        self.group.world.after(0.05 + self._random.random(), self.boot)

    # -- writing --------------------------------------------------------------------------------

    def want(self, wanted: Wanted) -> None:
        """A client wants something written, now or when what is out is through."""
        self.hear(self.lives, lambda: self._want(wanted))

    def _want(self, wanted: Wanted) -> None:
        if self.serves:
            self._wanted.append(wanted)
            self._write_on()

    def _write_on(self) -> None:
        while self._writing is None and self._wanted and self.serves:
            wanted = self._wanted.popleft()
            batch = wanted.make(self)
            if batch is not None:
                self._writing = wanted
                entries = self.store.writes.prepare(batch, self.now_us)
                self._append(entries, partial(self._written, batch, entries))

    def _append(self, entries: list[LogEntry], done: Callable[[], None]) -> None:
        """Append entries one after another, for the leader that this server is."""
        leader = self.life.leader
        assert leader is not None, "only a leader appends"
        if len(entries) > 1:
            self.group.world.mark("a write of several parts")
        self._append_next(leader.epoch, deque(entries), done)

    def _crashes(self) -> bool:
        """Whether this is the moment of a crash."""
        if not self.group.crashes_now(self):
            return False
        self.crash()
        self.group.world.after(_RETURNS_S, self.boot)
        return True

    def _append_next(self, epoch: int, left: deque[LogEntry], done: Callable[[], None]) -> None:
        if self._crashes():
            return
        if left:
            self._attempt(Appending(epoch, left[0]), epoch, left, done)
        else:
            done()

    def _attempt(
        self, appending: Appending, epoch: int, left: deque[LogEntry], done: Callable[[], None]
    ) -> None:
        life = self.lives
        if appending.state != ASKING:
            self._settled(appending, epoch, left, done)
            return

        def answered(answer: LogAnswer) -> None:
            appending.answered(answer)
            self._settled(appending, epoch, left, done)

        def unanswered() -> None:
            self.group.world.mark("an append was not answered")
            pause_s = appending.unanswered()
            self._later(pause_s, self._attempt, appending, epoch, left, done)

        self.link.ask(
            appending.request,
            lambda answer: self.hear(life, lambda: answered(answer)),
            lambda: self.hear(life, unanswered),
        )

    def _settled(
        self, appending: Appending, epoch: int, left: deque[LogEntry], done: Callable[[], None]
    ) -> None:
        if appending.state == DONE:
            left.popleft()
            self._append_next(epoch, left, done)
        else:
            self.group.world.mark("a leader was fenced")
            self.life.fenced(appending.reason)

    def _written(self, batch: StoreBatch, entries: list[LogEntry]) -> None:
        wanted, self._writing = self._writing, None
        assert wanted is not None, "it was taken"
        self.store.writes.commit(batch, entries)
        self._took(entries)
        if not self._crashes():
            wanted.done(self)
            self._write_on()
