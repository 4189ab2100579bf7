"""The threads of a server in a group: they carry out the effects of its life
(``replication.life``).

Theory of operation.  One thread runs the life, and owns the store as long as the server stands by.
Requests to the log block, so a thread of a small pool makes each, and passes the answer to the
life's thread.  When the server leads, the store belongs to the server's own storage thread, which
appends through :meth:`Replica.append`; the life continues here, and renews the claim.

When the life ends, ``over`` is called immediately, by the thread that learns it first.  It must
prevent any further answer: the process ends, or begins again from nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from tmqp_server.replication.appending import ASKING, FENCED, Appending
from tmqp_server.replication.effects import Apply, AskLog, Begin, Lead, LifeEffect
from tmqp_server.replication.life import ENDED, LEADER, STANDBY, Life, LifeSettings
from tmqp_server.replication.view import GroupView, view_of
from tmqp_server.storage.log import (
    Leader,
    LifeOverError,
    LogEntry,
    LogRequest,
    Resign,
    SharedLog,
    UnansweredError,
)
from tmqp_server.storage.port import StoreError

__all__ = ["MemberStore", "Replica"]

logger = logging.getLogger(__name__)

#: A request on each line of a life, and those that are not waited for any more.
_THREADS: Final = 8
#: What a standby has taken is on its disk after so long, in seconds.
_CARRY_S: Final = 2.0
_MOST_WAIT_S: Final = 60.0
#: An append that is tried again, each half second in the end, is a line in the log so often.
_ATTEMPTS_PER_LINE: Final = 20


def _nothing() -> None:
    """Do nothing: no caller has asked to be told."""


class MemberStore(Protocol):
    """The store as the life's thread uses it."""

    @property
    def carried(self) -> int:
        """The last entry that its disk has."""

    def take(self, entries: list[LogEntry]) -> None:
        """Take entries of the log."""

    def carry(self) -> int:
        """Write what was taken to disk; return the last entry that the disk has."""

    def begin(self, epoch: int, node: str, address: str, now_us: int) -> LogEntry:
        """The entry with which this server begins to lead."""


class Replica:
    """A server's part in its group.

    :param log: the group's log; its creator closes it.
    :param token: a text that no other life has.
    :param lead: called when the server may serve clients, with its claim; the store is the caller's
        from then on.
    :param over: called when the life has ended, with the reason and whether the server must be
        rebuilt with a copy.
    :param told: called when the server's state or the leader that it knows has changed.
    """

    def __init__(
        self,
        log: SharedLog,
        store: MemberStore,
        settings: LifeSettings,
        token: str,
        lead: Callable[[Leader], None],
        over: Callable[[str, bool], None],
        told: Callable[[], None] = _nothing,
    ) -> None:
        self._log = log
        self._store = store
        self._settings = settings
        self._lead = lead
        self._over = over
        self._tell = told
        self._told_of = (STANDBY, 0)
        self._appended = 0
        self._effects: list[LifeEffect] = []
        self._life = Life(settings, token, store.carried, self._effects)
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="log")
        self._is_over = threading.Event()
        self._told = threading.Lock()
        self._has_told = False
        self._carry_at = time.monotonic() + _CARRY_S
        self._thread = threading.Thread(target=self._run, name="replica", daemon=True)

    def start(self) -> None:
        """Begin the life."""
        self._thread.start()

    def stop(self) -> None:
        """End the life cleanly: a leader resigns.  Returns when the life is over."""
        self._events.put(self._life.stop)
        self._thread.join()

    # --- For the storage thread of a leader ------------------------------------------------------

    def append(self, entry: LogEntry) -> None:
        """Append an entry to the log; returns when the log has it.

        :raises LifeOverError: when the log will never have it from this life, which is over.
        """
        leader = self._life.leader
        assert leader is not None, "only a leader appends"
        appending = Appending(leader.epoch, entry)
        attempts = 0
        while appending.state == ASKING:
            if self._is_over.is_set():
                raise LifeOverError("this server does not lead any more")
            try:
                appending.answered(self._log.ask(appending.request))
            except UnansweredError as error:
                if attempts % _ATTEMPTS_PER_LINE == 0:
                    text = "entry %d is not in the log yet, it is tried again: %s"
                    logger.warning(text, entry.number, error)
                attempts += 1
                self._is_over.wait(appending.unanswered())
        self._appended = entry.number
        if appending.state == FENCED:
            logger.warning("entry %d is refused: %s", entry.number, appending.reason)
            self.fail(appending.reason)
            raise LifeOverError(appending.reason)

    def look(self) -> GroupView:
        """Return the known state of the group; from any thread."""
        return view_of(self._life, self._appended, time.monotonic())

    def fail(self, reason: str) -> None:
        """End the life, because the storage thread has learnt first that it is over."""
        self._end(reason, needs_rebuild=False)
        self._events.put(partial(self._life.fenced, reason))

    def kept(self) -> None:
        """Note that the store's disk has more of the log."""
        self._events.put(lambda: self._life.carried(self._store.carried, time.monotonic()))

    # --- The life's thread -----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._life.start(time.monotonic())
            self._perform()
            while self._life.state != ENDED:
                self._wait()
                self._perform()
        except Exception as error:
            logger.exception("this server leaves its group because of a fault")
            self._end(f"{type(error).__name__}: {error}", needs_rebuild=False)
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _wait(self) -> None:
        """Wait for the next event, or until something is due."""
        due = min(self._life.due(), self._carry_at) - time.monotonic()
        try:
            self._events.get(timeout=min(max(0.0, due), _MOST_WAIT_S))()
        except Empty:
            now = time.monotonic()
            if now >= self._carry_at:
                self._carry(now)
            self._life.on_deadline(now)

    def _carry(self, now: float) -> None:
        self._carry_at = now + _CARRY_S
        if self._life.state < LEADER:
            try:
                carried = self._store.carry()
            except StoreError as error:
                logger.warning("replicated entries are not on the disk yet: %s", error)
                carried = self._store.carried
            self._life.carried(carried, now)

    def _perform(self) -> None:
        life = self._life
        leader = life.leader
        state = (life.state, 0 if leader is None else leader.epoch)
        if state != self._told_of:
            self._told_of = state
            self._tell()
        while self._effects:
            effect = self._effects.pop(0)
            if isinstance(effect, AskLog):
                if isinstance(effect.request, Resign) and life.state == ENDED:
                    self._resign(effect.request)
                else:
                    self._pool.submit(self._ask, effect.request)
            elif isinstance(effect, Apply):
                self._apply(effect.entries)
            elif isinstance(effect, Begin):
                settings = self._settings
                epoch, now_us = effect.leader.epoch, time.time_ns() // 1_000
                entry = self._store.begin(epoch, settings.node, settings.address, now_us)
                self._life.begin(entry, time.monotonic())
            elif isinstance(effect, Lead):
                logger.info("%s leads in epoch %d", self._settings.node, effect.leader.epoch)
                self._lead(effect.leader)
            else:
                self._end(effect.reason, effect.needs_rebuild)

    def _apply(self, entries: list[LogEntry]) -> None:
        try:
            self._store.take(entries)
        except StoreError as error:
            self._life.fenced(f"the log cannot be applied: {error}")
        else:
            self._life.applied(self._store.carried, time.monotonic())

    def _ask(self, request: LogRequest) -> None:
        """Send a request to the log; runs in the pool."""
        try:
            answer = self._log.ask(request)
        except UnansweredError as error:
            logger.info("the log does not answer: %s", error)
            self._events.put(lambda: self._life.unanswered(request, time.monotonic()))
        except Exception as error:
            logger.exception("the log cannot be reached")
            reason = f"{type(error).__name__}: {error}"
            self._events.put(lambda: self._life.fenced(reason))
        else:
            self._events.put(lambda: self._life.answered(request, answer, time.monotonic()))

    def _resign(self, request: Resign) -> None:
        """Resign at the end; without this, the lease expires a little later."""
        try:
            self._log.ask(request)
        except UnansweredError as error:
            logger.info("the claim could not be released: %s", error)

    def _end(self, reason: str, needs_rebuild: bool) -> None:
        self._is_over.set()
        with self._told:
            if self._has_told:
                return
            self._has_told = True
        self._over(reason, needs_rebuild)
