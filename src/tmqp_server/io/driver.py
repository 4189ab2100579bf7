"""Owns the turn of the event loop: hub in the middle, sessions around it, one task for all timers.

Theory of operation.  Everything happens in one thread.  A chunk of bytes is worked off, then every
session it touched is written to once.  A chunk that asks for much is worked off in portions, one
session's at a time, and others get their turn between them.  There is one timer task for the whole
server: it sleeps until the earliest deadline of the broker or of any session, and is woken only
when an earlier one appears.  A session's deadline moves with every byte it receives, nearly always
to a later time; so its place in the heap is looked at again only when it comes up or when the
deadline came nearer.

A fault (a bug in a door or in the broker) ends the session it belongs to and is logged with its
traceback.  One at a deadline of the broker belongs to nobody: it is logged, and tried again later.

What the hub wants to be decided is asked in a task of the session it is about, which is not read
from until the answer is there.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import anyio
import anyio.lowlevel

from tmqp_server.access.custom import ClientGone
from tmqp_server.access.gate import Question
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command, HttpAnswered
from tmqp_server.engine.effects import CallHttp, TellHandler
from tmqp_server.hub.hub import Hub
from tmqp_server.io.event_loop import clock
from tmqp_server.io.judge import Judge
from tmqp_server.io.session import Session

__all__ = ["Driver"]

logger = logging.getLogger("tmqp_server.driver")

#: Pause after the broker failed at a deadline, in seconds.
_FAULT_PAUSE_S = 1.0
#: How often a session that is being sent to is looked at, in seconds.
_BUSY_RECHECK_S = 1.0
#: Timers of the dead beyond this number, and beyond those of the living, are swept out.
_SPARE_TIMERS = 256
_FAULT = "an internal error"


class Driver:
    """Runs one hub.

    :param hub: broker and door sessions.
    :param door: the protocol spoken by every session opened from now on.
    :param judge: answers the hub's questions; None if it asks none.
    :param call: makes an HTTP call; what comes of it is told by :meth:`answered`.  Needed only
        where the broker's options allow HTTP bindings.
    :param tell: hands an event to a channel's event handler; needed only where there are some.
    """

    def __init__(
        self,
        hub: Hub,
        door: Door,
        judge: Judge | None = None,
        call: Callable[[CallHttp], None] | None = None,
        tell: Callable[[TellHandler], None] | None = None,
    ) -> None:
        self.hub = hub
        self._door = door
        self._judge = judge
        self._call = call
        self._tell = tell
        self._now = anyio.current_time
        self._sessions: dict[int, Session] = {}
        self._timers: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}
        self._broker_not_before = 0.0
        self._wake_at = math.inf
        self._wake = anyio.Event()
        self._flushing = False
        self._none_left = anyio.Event()
        self._lane = anyio.Lock()
        self._closing = ""
        #: Called when the hub has something for the storage.
        self.wake_storage: Callable[[], None] | None = None
        #: Called after every turn: the connections to other servers look for something to send.
        self.after_turn: Callable[[], None] | None = None

    @property
    def lane(self) -> anyio.Lock:
        """What a session holds while it works on a portion: see :class:`SessionOwner`."""
        return self._lane

    @property
    def sessions(self) -> int:
        """Connections at this moment."""
        return len(self._sessions)

    # -- what sessions report -------------------------------------------------------------------

    def opened(self, session: Session) -> None:
        """A session begins."""
        if not self._sessions:
            self._now = clock()
        now = self._now()
        number = session.number
        self._sessions[number] = session
        self.hub.open(number, self._door, now)
        self._watch(number)
        logger.debug("%s: connected (session %d)", session.transport.peer, number)
        if self._closing:
            self.hub.close(number, self._closing, now)

    def received(self, session: Session, data: bytes) -> bool:
        """A session read a chunk; True when a part of it waits for :meth:`go_on`."""
        number = session.number
        more = self.hub.receive(number, data, self._now())
        self._turn()
        deadline = self.hub.session_deadline(number)
        if deadline is not None and deadline < self._due.get(number, math.inf):
            self._watch(number)  # accepted: its next ping is due before the handshake was
        return more

    def go_on(self, session: Session) -> bool:
        """A session's turn has come again; True when it must have another."""
        more = self.hub.go_on(session.number, self._now())
        self._turn()
        return more

    def ended(self, session: Session) -> None:
        """A session's peer sends no more."""
        self.hub.receive_eof(session.number, self._now())
        self._turn()

    def closed(self, session: Session, reason: str) -> None:
        """A session is over."""
        self._sessions.pop(session.number, None)
        self._due.pop(session.number, None)
        if not self._sessions:
            self._none_left.set()
        logger.info("%s: closed: %s", session.transport.peer, reason)
        if self._judge is not None:
            self._judge.forget(session.number)
        self.hub.forget(session.number, self._now())
        self._turn()

    async def wait_for_none(self) -> None:
        """Wait until no session is left."""
        while self._sessions:
            self._none_left = anyio.Event()
            await self._none_left.wait()

    def kept(self, commands: Iterable[Command]) -> None:
        """The storage answers; an answer that fails (a bug) is logged, and the rest goes on."""
        now = self._now()
        for command in commands:
            try:
                self.hub.answer(command, now)
            except Exception:
                logger.exception("the broker failed at an answer of the storage")
            self._turn()

    def block(self, session: Session) -> None:
        """A session's peer does not read."""
        logger.debug("%s: reads slowly, deliveries are held back", session.transport.peer)
        with self._blaming(session):
            self.hub.block(session.number, self._now())
            self._turn()

    def unblock(self, session: Session) -> None:
        """A session's peer reads again."""
        with self._blaming(session):
            self.hub.unblock(session.number, self._now())
            self._turn()

    def perform(self, commands: Iterable[Command]) -> None:
        """Carry out what no session asked: what another server said, or how it is."""
        now = self._now()
        for command in commands:
            self.hub.perform(command, now)
        self._turn()

    def close_reason(self, session: Session) -> str:
        """Why a session's protocol is closed; empty while it is not."""
        return self.hub.close_reason(session.number)

    def close_all(self, reason: str) -> None:
        """Close every session politely, those to come as well; each ends by itself when its bytes
        are out."""
        self._closing = reason
        now = self._now()
        for number, session in list(self._sessions.items()):
            with self._blaming(session):
                self.hub.close(number, reason, now)
        self._turn()

    # -- questions ------------------------------------------------------------------------------

    async def send(self, session: int, data: bytes) -> None:
        """Send whole messages to a session, as soon as its peer reads.

        :raises ClientGone: when it is over, or ends while this waits.
        """
        there = self._sessions.get(session)
        if there is not None:
            await there.drained()
        if session not in self._sessions or self.hub.close_reason(session):
            raise ClientGone(f"the client of session {session} has gone")
        self.hub.send(session, data)
        self._turn()

    def _ask(self, question: Question) -> None:
        session = self._sessions.get(question.session)
        if session is not None:
            session.hold()
            session.start(self._decide, session, question)

    async def _decide(self, session: Session, question: Question) -> None:
        judge = self._judge
        assert judge is not None, "who asks no questions needs no answers"
        decision = await judge.decide(question, session.transport, self)
        if decision.pause_s > 0.0:
            # Many may be waiting for their refusal: each costs next to nothing meanwhile.
            self.hub.forget_hello(session.number, question.ticket)
            await anyio.sleep(decision.pause_s)
        session.release()
        with self._blaming(session):
            self.hub.decide(session.number, question.ticket, decision, self._now())
            self._turn()

    @contextmanager
    def _blaming(self, session: Session) -> Iterator[None]:
        """Whatever is raised ends this session, and nobody else."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._end_faulty(session, error)

    def _end_faulty(self, session: Session, error: Exception) -> None:
        logger.error("%s: the session failed", session.transport.peer, exc_info=error)
        session.cut(_FAULT)

    def set_router_enabled(self, name: str, enabled: bool) -> bool:
        """Let a router work, or not; False when there is none of that name."""
        found = self.hub.set_router_enabled(name, enabled, self._now())
        self._turn()
        return found

    def answered(self, answer: HttpAnswered) -> None:
        """An HTTP call has come to its end."""
        try:
            self.hub.answered(answer, self._now())
        except Exception:
            logger.exception("the answer to an HTTP call failed")
        self._turn()

    # -- the turn -------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Write to every touched session, then see to everything else that came of it."""
        if self._flushing:
            return  # a write that blocks a session comes back here: the loop below goes on
        self._flushing = True
        hub = self.hub
        sessions = self._sessions
        try:
            while outbound := hub.take_outbound():
                for number, data in outbound:
                    session = sessions.get(number)
                    if session is None:
                        continue
                    try:
                        if data:
                            session.write(data)
                        else:
                            session.stop()  # its reading finds the end by itself
                    except Exception as error:  # noqa: BLE001 - a bug; it is logged
                        self._end_faulty(session, error)
        finally:
            self._flushing = False
        if self.after_turn is not None or hub.wants_attention(self._wake_at):
            self._attend()

    def _attend(self) -> None:
        """See to what is no bytes; then whether the timer must wake earlier."""
        hub = self.hub
        if self._judge is not None:
            for question in hub.take_questions():
                self._ask(question)
        for number, fault in hub.take_faults().items():
            session = self._sessions.get(number)
            if session is not None:
                self._end_faulty(session, fault)
            elif number == 0:
                logger.error("a delivery cannot be encoded", exc_info=fault)
        for failure in hub.take_router_failures():
            logger.error("the router %r failed", failure.router, exc_info=failure.error)
        for call in hub.take_calls():
            assert self._call is not None, "without a caller no HTTP binding is allowed"
            self._call(call)
        for telling in hub.take_tellings():
            assert self._tell is not None, "no channel has a handler that nobody registered"
            self._tell(telling)
        if self.after_turn is not None:
            self.after_turn()
        if self._broker_deadline() < self._wake_at:
            self._wake.set()
        if self.wake_storage is not None and hub.wants_storage:
            self.wake_storage()

    # -- timers ---------------------------------------------------------------------------------

    def _watch(self, number: int) -> None:
        deadline = self.hub.session_deadline(number)
        if deadline is not None:
            self._put(deadline, number)

    def _put(self, due: float, number: int) -> None:
        self._due[number] = due
        heapq.heappush(self._timers, (due, number))
        if len(self._timers) > 2 * len(self._due) + _SPARE_TIMERS:
            # Those of sessions that are gone would stay until they are due.
            self._timers = [(at, each) for each, at in self._due.items()]
            heapq.heapify(self._timers)
        if due < self._wake_at:
            self._wake.set()

    async def run_timers(self) -> None:
        """Serve all deadlines, for ever."""
        while True:
            self._serve_due(self._now())
            self._wake_at = self._earliest()
            delay = self._wake_at - self._now()
            if delay <= 0:
                await anyio.lowlevel.checkpoint()
                continue
            with anyio.move_on_after(None if math.isinf(delay) else delay):
                await self._wake.wait()
            self._wake = anyio.Event()

    def _serve_due(self, now: float) -> None:
        hub = self.hub
        if self._broker_deadline() <= now:
            try:
                hub.on_broker_deadline(now)
            except Exception:
                logger.exception("the broker failed at a deadline")
                self._broker_not_before = now + _FAULT_PAUSE_S
        timers = self._timers  # nothing is put in while they are taken out
        due: list[int] = []
        while timers and timers[0][0] <= now:
            at, number = heapq.heappop(timers)
            if self._due.get(number) == at:  # else it is gone, or was put in anew for earlier
                due.append(number)
        for number in due:
            session = self._sessions.get(number)
            if session is None:
                continue
            if session.outbound_bytes or hub.is_waiting(number):
                # It has much to read before it could hear a ping.  Whether it reads is judged by
                # the stall time; and it may be a session that is not read from just now.  Nor is
                # one about which a question is open, which has a time limit of its own.
                self._put(now + _BUSY_RECHECK_S, number)
                continue
            with self._blaming(session):
                deadline = hub.session_deadline(number)
                if deadline is not None and deadline <= now:
                    hub.on_session_deadline(number, now)
                self._watch(number)
        self._turn()

    def _earliest(self) -> float:
        earliest = self._broker_deadline()
        if self._timers:
            earliest = min(earliest, self._timers[0][0])
        return earliest

    def _broker_deadline(self) -> float:
        deadline = self.hub.broker_deadline()
        return math.inf if deadline is None else max(deadline, self._broker_not_before)
