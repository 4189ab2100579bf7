"""The event loop's part of the shell: carries out world effects and reports their outcome.

It decides nothing: :class:`~tmqp_server.shell.turn.Turn` does.  Everything runs in one thread,
except the store, which does one piece of work at a time in its own thread.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import anyio.lowlevel

from tmqp.address import Address
from tmqp_server.access.custom import ClientGone
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command
from tmqp_server.engine.model.histograms import Histogram
from tmqp_server.hub.questions import StorageQuestion
from tmqp_server.hub.recovery import answer_of
from tmqp_server.io.connection import Connection
from tmqp_server.io.datagram import Source
from tmqp_server.io.direct_loop import DirectLoop
from tmqp_server.io.event_handlers import Teller
from tmqp_server.io.event_loop import asyncio_loop, clock
from tmqp_server.io.judge import Judge
from tmqp_server.io.node_link import NodeLink
from tmqp_server.io.worker import Worker
from tmqp_server.shell.asking import NO
from tmqp_server.shell.pulse import SlowTurn
from tmqp_server.shell.saving import CLOSED
from tmqp_server.shell.steps import EFFECTS, GONE, NOT_YET
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import (
    INTERNAL_ERROR,
    Abandon,
    Ask,
    Call,
    CatchUp,
    Close,
    CloseStore,
    Dial,
    Drained,
    DrainEnded,
    GoOn,
    HangUp,
    LinkOutput,
    Log,
    ReadBatch,
    Resume,
    Secure,
    StartWriting,
    StopListening,
    Tell,
    Wake,
    WriteBatch,
)
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.port import Store

if TYPE_CHECKING:
    from tmqp_server.io.http import HttpCaller

__all__ = ["Shell"]

logger = logging.getLogger("tmqp_server.shell")

_StoreWork = WriteBatch | ReadBatch | CatchUp | CloseStore


def _nothing() -> None:
    """Do nothing: there are no listeners."""


class Shell:
    """Runs one turn in the event loop.

    :param turn: makes the decisions.
    :param door: the protocol of connections that name no other.
    :param judge: answers questions; None if there are none.
    :param http: makes HTTP calls; None if none are allowed.
    :param teller: calls channels' event handlers; None if there are none.
    :param store: the store and its journal; None without one.
    :param masters: the addresses of other servers, in the order of the turn's links.
    :param stop_listening: closes the listeners.
    :param stop: stops the server.
    """

    def __init__(
        self,
        turn: Turn,
        door: Door,
        judge: Judge | None = None,
        http: HttpCaller | None = None,
        teller: Teller | None = None,
        store: Store | None = None,
        journal: Journal | None = None,
        masters: Sequence[Address] = (),
        *,
        stop_listening: Callable[[], None] = _nothing,
        stop: Callable[[], None] = _nothing,
    ) -> None:
        self.turn = turn
        #: The time, as the event loop tells it.
        self.now: Callable[[], float] = anyio.current_time
        self._stop_listening = stop_listening
        self._stop = stop
        self._door = door
        self._judge = judge
        self._http = http
        self._teller = teller
        self._store = store
        self._journal = journal
        self._masters = masters
        self._connections: dict[int, Connection | Source] = {}
        self._node_links: dict[Dial, NodeLink] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._scopes: dict[Ask | Call | Tell, anyio.CancelScope] = {}
        self._drained: dict[int, anyio.Event] = {}
        self._attending = False
        self._due_nearer = anyio.Event()
        self._portion_waits = anyio.Event()
        self._store_work: _StoreWork | None = None
        self._store_called = anyio.Event()
        self._worker = Worker("tmqp-server storage")
        self._store_fault: BaseException | None = None
        self._store_closed = anyio.Event()
        self._none_left = anyio.Event()
        self._all_told = anyio.Event()
        self._starters: dict[type, Callable[[Any], None]] = {
            StartWriting: self._start_writing,
            Resume: self._resume,
            Secure: self._secure,
            Drained: self._tell_drained,
            Close: self._close,
            GoOn: self._go_on,
            Wake: self._wake,
            Ask: self._ask,
            Call: self._call,
            Tell: self._tell,
            Abandon: self._abandon,
            WriteBatch: self._work_on,
            ReadBatch: self._work_on,
            CatchUp: self._work_on,
            CloseStore: self._work_on,
            Dial: self._dial,
            LinkOutput: self._link_output,
            HangUp: self._hang_up,
            StopListening: lambda _: self._stop_listening(),
            DrainEnded: self._end_drain,
            Log: self._log,
        }

    # -- its tasks ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry out effects, until cancelled."""
        self.now = clock()
        loop = asyncio_loop()
        if isinstance(loop, DirectLoop):
            loop.add_rounds(self.turn.begin_round, self._end_round)
            loop.note_turns(self.turn.pulse, self._note_slow_turn)
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                tasks.start_soon(self._run_timers)
                tasks.start_soon(self._run_portions)
                if self._store is not None:
                    tasks.start_soon(self._run_store)
                if self._http is not None:
                    tasks.start_soon(self._http.run)
                self.attend()
                await anyio.sleep_forever()
            finally:
                self._tasks = None
                if isinstance(loop, DirectLoop):
                    loop.remove_rounds(self.turn.begin_round)
                    loop.note_turns(None, None)

    def _note_slow_turn(self, slow: SlowTurn) -> None:
        self.turn.turn_was_slow(slow)
        self.attend()

    def _end_round(self) -> None:
        if self.turn.end_round(self.now()):
            self.attend()

    def attend(self) -> None:
        """Carry out the effects of the turn."""
        if self._attending:
            return  # what an effect led to is carried out behind those before it
        self._attending = True
        try:
            while effects := self.turn.take_effects():
                for effect in effects:
                    self._starters[type(effect)](effect)
        finally:
            self._attending = False

    async def _run_timers(self) -> None:
        """Serve all deadlines, for ever."""
        turn = self.turn
        while True:
            turn.on_deadline(self.now())
            self.attend()
            self._due_nearer = anyio.Event()
            due = turn.next_deadline()
            delay_s = due - self.now()
            if delay_s <= 0.0:
                await anyio.lowlevel.checkpoint()
                continue
            with anyio.move_on_after(None if math.isinf(delay_s) else delay_s):
                await self._due_nearer.wait()

    def _wake(self, _effect: Wake) -> None:
        self._due_nearer.set()

    async def _run_portions(self) -> None:
        """Process a portion whenever others have had their turn, for ever."""
        while True:
            await self._portion_waits.wait()
            self._portion_waits = anyio.Event()
            await anyio.lowlevel.checkpoint()
            self.turn.go_on(self.now())
            self.attend()

    def _go_on(self, _effect: GoOn) -> None:
        self._portion_waits.set()

    # -- connections ----------------------------------------------------------------------------

    def opened(self, connection: Connection) -> int:
        """Begin a connection; return what its reader does next."""
        number = connection.number
        self._connections[number] = connection
        transport = connection.transport
        logger.debug("%s: connected (session %d)", transport.peer, number)
        door = connection.door or self._door
        step = self.turn.opened(number, door, transport, connection.host, self.now())
        self.attend()
        return step & ~EFFECTS

    def joined(self, source: Source) -> None:
        """Begin the session of a source of datagrams."""
        self._connections[source.number] = source
        logger.debug("%s: first datagram (session %d)", source.transport.peer, source.number)

    def gone(self, connection: Connection | Source) -> None:
        """Handle the end of a connection."""
        number = connection.number
        self.turn.closed(number, self.now())
        self.attend()
        reason = connection.reason or "the server stopped"
        logger.info("%s: closed: %s", connection.transport.peer, reason)
        if self._judge is not None:
            self._judge.forget(number)
        self._connections.pop(number, None)
        self._note_end()

    def _note_end(self) -> None:
        if not self._connections and not self._node_links:
            self._none_left.set()

    def failed(self, connection: Connection, error: Exception) -> None:
        """Handle a bug in the transfer of bytes: end only this connection."""
        logger.error("%s: the session failed", connection.transport.peer, exc_info=error)
        connection.close(INTERNAL_ERROR)

    async def wait_for_none(self) -> None:
        """Wait until no connection is left, neither of clients nor to other servers."""
        while self._connections or self._node_links:
            self._none_left = anyio.Event()
            await self._none_left.wait()

    def drain(self, *, stops: bool) -> None:
        """Accept nothing more, and wait for acknowledgements; see ``Turn.drain``."""
        self.turn.drain(stops, self.now())
        self.attend()

    def _end_drain(self, effect: DrainEnded) -> None:
        if effect.stops:
            self._stop()

    def close_all(self, reason: str) -> None:
        """Close every connection politely, also those opened later, and those to other servers."""
        self.turn.close_all(reason, self.now())
        self.attend()

    def set_router_enabled(self, name: str, enabled: bool) -> bool:
        """Enable or disable a router; return False if there is none of that name."""
        found = self.turn.set_router_enabled(name, enabled, self.now())
        self.attend()
        return found

    def _start_writing(self, effect: StartWriting) -> None:
        connection = self._connections.get(effect.session)
        if connection is not None and self._tasks is not None:
            self._tasks.start_soon(connection.write, anyio.CancelScope())

    def _resume(self, effect: Resume) -> None:
        connection = self._connections.get(effect.session)
        if connection is not None:
            connection.resume()

    def _secure(self, effect: Secure) -> None:
        connection = self._connections.get(effect.session)
        if connection is not None:
            connection.upgrade()

    def _close(self, effect: Close) -> None:
        connection = self._connections.get(effect.session)
        if connection is not None:
            connection.close(effect.reason)

    def _log(self, effect: Log) -> None:
        text = effect.text
        connection = self._connections.get(effect.session)
        if connection is not None:
            text = f"{connection.transport.peer}: {text}"
        log = logging.getLogger(f"tmqp_server.{effect.topic}")
        log.log(effect.level, "%s", text, exc_info=effect.error)

    # -- connections to other servers -----------------------------------------------------------

    def _dial(self, dial: Dial) -> None:
        if self._tasks is not None:
            link = self._node_links[dial] = NodeLink(dial, self._masters[dial.link], self)
            self._tasks.start_soon(self._run_link, dial, link)

    async def _run_link(self, dial: Dial, link: NodeLink) -> None:
        try:
            await link.run()
        except Exception:
            log = logging.getLogger("tmqp_server.cluster")
            log.exception("the connection to master %s failed", self._masters[dial.link])
            self.turn.link_failed(dial, INTERNAL_ERROR, self.now())
            self.attend()
        finally:
            del self._node_links[dial]
            self._note_end()

    def _link_output(self, effect: LinkOutput) -> None:
        link = self._node_links.get(effect.dial)
        if link is not None:
            link.write()

    def _hang_up(self, effect: HangUp) -> None:
        link = self._node_links.get(effect.dial)
        if link is not None:
            link.hang_up()

    # -- what a hook sends ----------------------------------------------------------------------

    async def send(self, session: int, data: bytes) -> None:
        """Send whole messages to a session, as soon as its peer reads.

        :raises ClientGone: when the session has ended, or ends while this waits.
        """
        while True:
            outcome = self.turn.send(session, data, self.now())
            self.attend()
            if outcome == GONE:
                raise ClientGone(f"the client of session {session} has gone")
            if outcome != NOT_YET:
                return
            event = self._drained.get(session)
            if event is None:
                event = self._drained[session] = anyio.Event()
            await event.wait()

    def _tell_drained(self, effect: Drained) -> None:
        event = self._drained.pop(effect.session, None)
        if event is not None:
            event.set()

    # -- code outside ---------------------------------------------------------------------------

    def _ask(self, effect: Ask) -> None:
        self._start(effect, self._decide)

    async def _decide(self, ask: Ask, scope: anyio.CancelScope) -> None:
        judge = self._judge
        connection = self._connections.get(ask.question.session)
        assert judge is not None, "who asks no questions needs no answers"
        decision = NO
        with scope:
            if connection is not None:
                decision = await judge.decide(ask.question, connection.transport, self)
        self._scopes.pop(ask, None)
        self.turn.decided(ask, decision, self.now())
        self.attend()

    def _call(self, effect: Call) -> None:
        self._start(effect, self._make_call)

    async def _make_call(self, call: Call, scope: anyio.CancelScope) -> None:
        http = self._http
        assert http is not None, "without a caller no HTTP binding is allowed"
        status, body = 0, b""
        with scope:
            status, body = await http.make(call.call)
        self._scopes.pop(call, None)
        self.turn.answered(call, status, body, self.now())
        self.attend()

    def _tell(self, effect: Tell) -> None:
        self._start(effect, self._tell_handler)

    async def _tell_handler(self, tell: Tell, scope: anyio.CancelScope) -> None:
        teller = self._teller
        assert teller is not None, "no channel has a handler that nobody registered"
        with scope:
            await teller.tell(tell.notification)
        if scope.cancelled_caught:
            teller.log_late(tell.notification)
        self._scopes.pop(tell, None)
        self.turn.told(tell, self.now())
        self.attend()
        if self.turn.is_told:
            self._all_told.set()

    async def wait_until_told(self) -> None:
        """Wait until the event handlers have handled all events."""
        while not self.turn.is_told:
            self._all_told = anyio.Event()
            await self._all_told.wait()

    def _start(self, work: Any, how: Callable[[Any, anyio.CancelScope], Any]) -> None:
        if self._tasks is not None:
            scope = self._scopes[work] = anyio.CancelScope()
            self._tasks.start_soon(how, work, scope)

    def _abandon(self, effect: Abandon) -> None:
        scope = self._scopes.get(effect.work)
        if scope is not None:
            scope.cancel()

    # -- the store ------------------------------------------------------------------------------

    def _work_on(self, effect: _StoreWork) -> None:
        assert self._store_work is None, "the store works on one thing at a time"
        self._store_work = effect
        if isinstance(effect, WriteBatch) and effect.at_once:
            self._begin_work(effect)
        else:
            self._store_called.set()

    async def _run_store(self) -> None:
        """Start the store's work, for ever: after everything else that is ready in this round of
        the event loop.
        """
        while True:
            await self._store_called.wait()
            self._store_called = anyio.Event()
            if self._store_fault is not None:
                raise self._store_fault
            work = self._store_work
            assert work is not None, "who calls has work"
            self._begin_work(work)

    def _begin_work(self, work: _StoreWork) -> None:
        turn = self.turn
        store, worker = self._store, self._worker
        assert store is not None, "it has work"
        histogram: Histogram | None = None
        do: Callable[[], object]
        tell: Callable[[Exception | None, float], None]
        if isinstance(work, WriteBatch):
            histogram = turn.tally.write
            do, tell = partial(_write, store, turn.take_batch()), turn.written
        elif isinstance(work, ReadBatch):
            assert self._journal is not None, "a store has a journal"
            answers: list[Command] = []
            histogram = turn.tally.read
            do = partial(_read, store, self._journal, work.questions, answers, self.now())
            tell = partial(turn.read, answers)
        elif isinstance(work, CatchUp):
            do, tell = store.catch_up, turn.caught_up
        else:
            do, tell = partial(store.close, work.clean), self._tell_closed
            worker.give(do, partial(self._worked, tell, None, 0.0))
            worker.stop()
            return
        worker.give(do, partial(self._worked, tell, histogram, self.now()))

    def _worked(
        self,
        tell: Callable[[Exception | None, float], None],
        histogram: Histogram | None,
        began: float,
        error: BaseException | None,
    ) -> None:
        """Handle the result of the store's work; called by the event loop itself."""
        if self._tasks is None:
            return  # nobody waits for it any more
        self._store_work = None
        now = self.now()
        if histogram is not None:
            histogram.observe(now - began)
        try:
            if error is not None and not isinstance(error, Exception):
                raise error
            tell(error, now)
            self.attend()
        except BaseException as fault:  # noqa: BLE001 - a bug, which ends the task and the server
            self._store_fault = fault
            self._store_called.set()

    def _tell_closed(self, error: Exception | None, _now: float) -> None:
        self.turn.store_closed(error)
        self._store_closed.set()

    async def finish_storage(self) -> None:
        """Write the last batch and close the store; no connection may be left."""
        saving = self.turn.saving
        if saving is None:
            return
        self.turn.finish(self.now())
        self.attend()
        if saving.state != CLOSED:
            await self._store_closed.wait()


def _write(store: Store, writing: Writing) -> None:
    batch = writing.batch
    if not batch.is_empty():
        store.write(batch, time.time_ns() // 1_000)


def _read(
    store: Store,
    journal: Journal,
    questions: Sequence[StorageQuestion],
    answers: list[Command],
    now: float,
) -> None:
    for asked in questions:
        answers.append(answer_of(store, journal, asked, now))
