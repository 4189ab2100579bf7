"""Owns the turn of the event loop: hub in the middle, sessions around it, one task for all timers.

Theory of operation.  Everything happens in one thread.  A chunk of bytes is worked off completely,
then every session it touched is written to once.  There is one timer task for the whole server: it
sleeps until the earliest deadline of the broker or of any session, and is woken only when an
earlier one appears.  A session's deadline moves with every byte it receives; so its place in the
heap is looked at again only when it comes up, which costs nothing while traffic flows.
"""

from __future__ import annotations

import heapq
import logging
import math

import anyio

from tmqp_server.doors.port import Door
from tmqp_server.hub import Hub
from tmqp_server.io.session import Session

__all__ = ["Driver"]

logger = logging.getLogger("tmqp_server.driver")


class Driver:
    """Runs one hub.

    :param hub: broker and door sessions.
    :param door: the protocol spoken by every session opened from now on.
    """

    def __init__(self, hub: Hub, door: Door) -> None:
        self.hub = hub
        self._door = door
        self._sessions: dict[int, Session] = {}
        self._timers: list[tuple[float, int]] = []
        self._wake_at = math.inf
        self._wake = anyio.Event()
        self._flushing = False
        self._none_left = anyio.Event()

    @property
    def sessions(self) -> int:
        """Connections at this moment."""
        return len(self._sessions)

    # -- what sessions report -------------------------------------------------------------------

    def opened(self, session: Session) -> None:
        """A session begins."""
        now = anyio.current_time()
        self._sessions[session.number] = session
        self.hub.open(session.number, self._door, now)
        self._watch(session.number)
        logger.debug("%s: connected (session %d)", session.transport.peer, session.number)

    def received(self, session: Session, data: bytes) -> None:
        """A session read a chunk."""
        self.hub.receive(session.number, data, anyio.current_time())
        self._turn()

    def ended(self, session: Session) -> None:
        """A session's peer sends no more."""
        self.hub.receive_eof(session.number, anyio.current_time())
        self._turn()

    def closed(self, session: Session, reason: str) -> None:
        """A session is over."""
        self._sessions.pop(session.number, None)
        self.hub.forget(session.number, anyio.current_time())
        self._turn()
        logger.info("%s: closed: %s", session.transport.peer, reason)
        if not self._sessions:
            self._none_left.set()

    async def wait_for_none(self) -> None:
        """Wait until no session is left."""
        while self._sessions:
            self._none_left = anyio.Event()
            await self._none_left.wait()

    def block(self, session: Session) -> None:
        """A session's peer does not read."""
        logger.debug("%s: reads slowly, deliveries are held back", session.transport.peer)
        self.hub.block(session.number, anyio.current_time())
        self._turn()

    def unblock(self, session: Session) -> None:
        """A session's peer reads again."""
        self.hub.unblock(session.number, anyio.current_time())
        self._turn()

    def close_reason(self, session: Session) -> str:
        """Why a session's protocol is closed; empty while it is not."""
        return self.hub.close_reason(session.number)

    def close_all(self, reason: str) -> None:
        """Close every session politely; each ends by itself when its bytes are out."""
        now = anyio.current_time()
        for number in list(self._sessions):
            self.hub.close(number, reason, now)
        self._turn()

    # -- the turn -------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Write to every touched session, then see whether the timer must wake earlier."""
        if self._flushing:
            return  # a write that blocks a session comes back here: the loop below goes on
        self._flushing = True
        hub = self.hub
        try:
            while touched := hub.take_touched():
                for number in touched:
                    session = self._sessions.get(number)
                    if session is None:
                        continue
                    data = hub.data_to_send(number)
                    if data:
                        session.write(data)
                    if hub.close_reason(number):
                        session.stop()
        finally:
            self._flushing = False
        deadline = hub.broker_deadline()
        if deadline is not None and deadline < self._wake_at:
            self._wake.set()

    # -- timers ---------------------------------------------------------------------------------

    def _watch(self, number: int) -> None:
        deadline = self.hub.session_deadline(number)
        if deadline is not None:
            heapq.heappush(self._timers, (deadline, number))
            if deadline < self._wake_at:
                self._wake.set()

    async def run_timers(self) -> None:
        """Serve all deadlines, for ever."""
        while True:
            now = anyio.current_time()
            self._serve_due(now)
            self._wake_at = self._earliest()
            delay = self._wake_at - anyio.current_time()
            if delay <= 0:
                await anyio.lowlevel.checkpoint()
                continue
            with anyio.move_on_after(None if math.isinf(delay) else delay):
                await self._wake.wait()
            self._wake = anyio.Event()

    def _serve_due(self, now: float) -> None:
        hub = self.hub
        deadline = hub.broker_deadline()
        if deadline is not None and deadline <= now:
            hub.on_broker_deadline(now)
        timers = self._timers
        while timers and timers[0][0] <= now:
            _due, number = heapq.heappop(timers)
            actual = hub.session_deadline(number)
            if actual is not None and actual <= now:
                hub.on_session_deadline(number, now)
            self._watch(number)
        self._turn()

    def _earliest(self) -> float:
        deadline = self.hub.broker_deadline()
        earliest = math.inf if deadline is None else deadline
        if self._timers:
            earliest = min(earliest, self._timers[0][0])
        return earliest
