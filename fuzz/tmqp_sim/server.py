"""Owns the simulated server: real hub, broker and door, and the shell around them in virtual time.

Theory of operation.  The shell does what the server's own does over sockets: a chunk is worked off,
then every session it touched is written to once; what the network does not take is kept, and past
the high water mark the session is blocked; one that makes no progress is cut; deadlines of sessions
and of the broker are served when they have come.  It may be frozen for a while (a virtual machine
that is moved) and it may crash: then its memory is gone, and what the disk had is all that a new
one begins with.

The server's clock is not the world's.  A life may begin on a machine that has just started: its
monotonic clock then starts near zero, and whatever was saved before lies before that clock's start.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

from tmqp_server.config import OutboundLimits
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command
from tmqp_server.hub.hub import Hub
from tmqp_sim.books import Ballast
from tmqp_sim.network import Broken, End, Link
from tmqp_sim.world import Violation, World

__all__ = ["Built", "Server", "Session"]

#: How often a session that is being sent to is looked at, in seconds.
BUSY_RECHECK_S: Final = 1.0
#: How long a machine has been up at most when a server starts after a reboot, in seconds.
_LONGEST_BOOT_S: Final = 2.0


class Built:
    """What one life of the server consists of."""

    __slots__ = ("ballast", "door", "hub")

    def __init__(self, hub: Hub, door: Door, ballast: Ballast) -> None:
        self.hub = hub
        self.door = door
        self.ballast = ballast


class Session:
    """The server's side of one link: bounded output, paused input, orderly ends."""

    def __init__(self, server: Server, link: Link) -> None:
        self.server = server
        self.number = link.number
        self.end: End = link.server
        self.waiting: deque[bytes] = deque()
        self.waiting_bytes = 0
        self.blocked = False
        self.more = False
        self.held_back = False
        self.finishing = False
        self.over = False
        self.due = math.inf
        self.progress_at = 0.0
        #: A call of check_stall is to come; there is never another beside it.
        self.stall_watched = False
        limits = server.outbound
        self._pause_bytes = max(limits.max_outbound_bytes // 2, limits.high_water_bytes)
        self.received_at = server.world.now

    # -- reading --------------------------------------------------------------------------------

    def readable(self) -> None:
        """Bytes have come: one chunk is worked off a turn."""
        server = self.server
        if server.asleep or self.over or self.finishing:
            return
        hub = server.hub
        now = server.now
        if hub.close_reason(self.number):
            return
        if self.blocked and (self.more or self.waiting_bytes > self._pause_bytes):
            self.held_back = True
            server.world.mark("reading held back")
            return
        if self.more:
            self.more = hub.go_on(self.number, now)
            server.world.mark("portion continued")
        else:
            data = self.end.read()
            if data is None:
                return
            if not data:
                hub.receive_eof(self.number, now)
                server.turn()
                self.finish("the peer closed")
                return
            self.received_at = server.world.now
            self.more = hub.receive(self.number, data, now)
        server.turn()
        server.watch(self)
        if not self.over:
            server.world.after(0.0, self.readable)

    def broken(self, reason: str) -> None:
        """The connection broke."""
        if self.over:
            return
        self.drop()
        if self.server.asleep:
            self.server.broken_meanwhile.append(self)
            return
        self.server.hub.receive_eof(self.number, self.server.now)
        self.server.turn()
        self.finish(reason)

    # -- writing --------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send, or keep what cannot be sent now."""
        if self.over or self.end.closed:
            return
        if not self.waiting:
            try:
                sent = self.end.send(data)
            except Broken:
                return
            if sent == len(data):
                return
            data = data[sent:]
            self.progress_at = self.server.world.now
            if not self.stall_watched:
                self.stall_watched = True
                self.server.world.after(self.server.outbound.stall_timeout_s, self.check_stall)
        self.waiting.append(data)
        self.waiting_bytes += len(data)
        limits = self.server.outbound
        if self.blocked:
            if self.waiting_bytes > limits.max_outbound_bytes:
                self.cut("slow reader: too many bytes are waiting")
        elif self.waiting_bytes > limits.high_water_bytes:
            self.blocked = True
            self.server.world.mark("session blocked")
            self.server.hub.block(self.number, self.server.now)
            self.server.turn()

    def writable(self) -> None:
        """There is room: send on."""
        server = self.server
        if server.asleep or self.over:
            return
        while self.waiting:
            piece = self.waiting[0]
            try:
                sent = self.end.send(piece)
            except Broken:
                return
            if not sent:
                return
            self.progress_at = server.world.now
            self.waiting_bytes -= sent
            if sent < len(piece):
                self.waiting[0] = piece[sent:]
            else:
                self.waiting.popleft()
            if self.blocked and self.waiting_bytes <= server.outbound.low_water_bytes:
                self.blocked = False
                server.world.mark("session unblocked")
                server.hub.unblock(self.number, server.now)
                server.turn()
                if self.held_back:
                    self.held_back = False
                    server.world.after(0.0, self.readable)
        if self.finishing:
            self.end_now()

    def check_stall(self) -> None:
        """Cut a peer that has read nothing for too long."""
        if self.over or not self.waiting:
            self.stall_watched = False
            return
        due = self.progress_at + self.server.outbound.stall_timeout_s
        if self.server.asleep or due > self.server.world.now:
            self.server.world.at(max(due, self.server.world.now + 0.001), self.check_stall)
            return
        self.server.world.mark("slow reader cut: stalled")
        self.cut("slow reader: no progress")

    # -- the end --------------------------------------------------------------------------------

    def drop(self) -> None:
        """There is nobody to send to."""
        self.waiting.clear()
        self.waiting_bytes = 0

    def cut(self, reason: str) -> None:
        """End it without another word."""
        self.drop()
        self.finishing = True
        self.server.world.after(0.0, self.end_now)

    def finish(self, reason: str) -> None:
        """End it when the last bytes are out, or after the time they have."""
        if self.finishing or self.over:
            return
        self.finishing = True
        if self.waiting and not self.end.closed:
            self.server.world.mark("flushed at the end")
            self.server.world.after(self.server.outbound.flush_timeout_s, self.end_now)
        else:
            self.server.world.after(0.0, self.end_now)

    def end_now(self) -> None:
        """The connection is over."""
        if self.over:
            return
        if self.server.asleep:
            self.server.world.after(0.01, self.end_now)
            return
        self.over = True
        server = self.server
        server.sessions.pop(self.number, None)
        server.hub.forget(self.number, server.now)
        server.turn()
        self.end.close()


class Server:
    """One server over its several lives.

    :param build: makes hub and door for a life that begins.
    :param began: called when it is up, with the new hub in place.
    :param lateness_s: timers are served up to so much too late.
    :param ping_interval_s: after how much silence the door pings.
    """

    def __init__(
        self,
        world: World,
        outbound: OutboundLimits,
        build: Callable[[], Built],
        began: Callable[[], None],
        lateness_s: float,
        ping_interval_s: float,
    ) -> None:
        self.world = world
        self.ping_interval_s = ping_interval_s
        self.outbound = outbound
        self.lives = 0
        #: When the clock of this life read zero, in the world's time.
        self.booted_at = 0.0
        self.up = False
        self.asleep = False
        self.sessions: dict[int, Session] = {}
        self.broken_meanwhile: list[Session] = []
        self._build = build
        self._began = began
        self._lateness_s = lateness_s
        self._random = world.child("server")
        self._reboots = world.child("reboots")
        self._knocking: list[Link] = []
        self._unheard: list[Command] = []
        #: Called when the hub has something for the storage.
        self.wake_storage: Callable[[], None] | None = None
        self._broker_due = math.inf
        self._turning = False
        self.hub: Hub
        self._door: Door

    # -- its clock ------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """What the server's monotonic clock reads."""
        return self.world.now - self.booted_at

    def _world_time(self, due: float) -> float:
        """When the server's clock reads *due* or later, in the world's time."""
        when = due + self.booted_at
        while when - self.booted_at < due:  # the sum was rounded down
            when = math.nextafter(when, math.inf)
        return when

    # -- its life -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a life."""
        if self.up:
            return
        self.lives += 1
        if self.lives > 1 and self._reboots.random() < 0.7:
            self.booted_at = self.world.now - self._reboots.random() * _LONGEST_BOOT_S
            self.world.mark("machine rebooted")
        built = self._build()
        self.hub = built.hub
        self._door = built.door
        self._ballast = built.ballast
        self.up = True
        self._broker_due = math.inf
        self.world.note("server", "starts, life", self.lives)
        self._began()
        self.turn()

    def crash(self) -> None:
        """The process is gone, with all that it had in memory."""
        if not self.up:
            return
        self.world.note("server", "crashes")
        self.world.mark("server crashed")
        self.up = False
        self.asleep = False
        self._broker_due = math.inf
        for session in list(self.sessions.values()):
            session.over = True
            session.drop()
            session.end.link.cut(self._random.random() * 0.3, 0.0, "the server is gone")
        self.sessions.clear()
        self.broken_meanwhile.clear()
        for link in self._knocking:
            link.cut(0.1, 0.0, "the server is gone")
        self._knocking.clear()
        self._unheard.clear()

    def freeze(self, duration_s: float) -> None:
        """The process stands still; its connections do not."""
        if self.up and not self.asleep:
            self.asleep = True
            self.world.note("server", "stands still for", duration_s)
            self.world.mark("server frozen")
            self.world.after(duration_s, self._wake, self.lives)

    def _wake(self, life: int) -> None:
        if not self.asleep or life != self.lives:
            return
        self.asleep = False
        self.world.note("server", "goes on")
        for link in self._knocking:
            self.accept(link)
        self._knocking.clear()
        for session in self.broken_meanwhile:
            session.broken("broken meanwhile")
        self.broken_meanwhile.clear()
        unheard, self._unheard = self._unheard, []
        self.storage_answers(unheard)
        for session in list(self.sessions.values()):
            session.writable()
            self.world.after(0.0, session.readable)
            self._serve_session(session)
        self._serve_broker(self._broker_due)

    def stop_politely(self, reason: str) -> None:
        """Close every session, as a stopping server does."""
        if self.up and not self.asleep:
            for number in list(self.sessions):
                self.hub.close(number, reason, self.now)
            self.turn()

    def storage_answers(self, commands: list[Command]) -> None:
        """The storage has something to say."""
        if self.asleep:
            self._unheard.extend(commands)
            return
        for command in commands:
            self.hub.answer(command, self.now)
        self.turn()

    # -- links ----------------------------------------------------------------------------------

    def accept(self, link: Link) -> None:
        """Somebody connects."""
        if not self.up:
            link.cut(0.0, 0.0, "connection refused")
            return
        if self.asleep:
            self._knocking.append(link)
            return
        link.life = self.lives
        session = Session(self, link)
        link.server.owner = session
        self.sessions[session.number] = session
        self.hub.open(session.number, self._door, self.now)
        self.watch(session)
        self.world.after(0.0, session.readable)

    # -- the turn -------------------------------------------------------------------------------

    def turn(self) -> None:
        """Write to every touched session, then see what is due next."""
        if self._turning or not self.up:
            return
        self._turning = True
        hub = self.hub
        try:
            while touched := hub.take_touched():
                for number in touched:
                    session = self.sessions.get(number)
                    if session is None:
                        continue
                    data = hub.data_to_send(number)
                    if data:
                        session.write(data)
                    if hub.close_reason(number):
                        session.finish("the protocol is closed")
        finally:
            self._turning = False
        self._ballast.even_out()
        for number, fault in hub.take_faults().items():
            raise Violation("fault", f"in the door of session {number}: {fault!r}") from fault
        if hub.wants_storage and self.wake_storage is not None:
            self.wake_storage()
        due = hub.broker_deadline()
        if due is not None and due < self._broker_due:
            self._broker_due = due
            late = self._random.random() * self._lateness_s if self._lateness_s else 0.0
            when = self._world_time(due)
            self.world.at(when + (late if due > self.now else 0.0), self._serve_broker, due)

    def _serve_broker(self, due: float) -> None:
        if due != self._broker_due or not self.up or self.asleep:
            return
        self._broker_due = math.inf
        self.hub.on_broker_deadline(self.now)
        self.turn()

    def watch(self, session: Session) -> None:
        """See to it that a session's deadline is kept."""
        deadline = self.hub.session_deadline(session.number)
        if deadline is not None and deadline < session.due:
            session.due = deadline
            self.world.at(self._world_time(deadline), self._session_due, session, deadline)

    def _session_due(self, session: Session, due: float) -> None:
        if not session.over and session.due == due and self.up and not self.asleep:
            self._serve_session(session)

    def _serve_session(self, session: Session) -> None:
        session.due = math.inf
        if session.over:
            return
        now = self.now
        if session.waiting_bytes:
            # Whether it reads is judged by the stall time.
            session.due = now + BUSY_RECHECK_S
            self.world.after(BUSY_RECHECK_S, self._session_due, session, session.due)
            return
        deadline = self.hub.session_deadline(session.number)
        if deadline is not None and deadline <= now:
            self.hub.on_session_deadline(session.number, now)
            self._check_keep_alive(session, self.world.now - session.received_at)
            self.turn()
        self.watch(session)

    def _check_keep_alive(self, session: Session, silent_s: float) -> None:
        """Nobody is asked while he speaks, nor given up before he had his two intervals (B4)."""
        reason = self.hub.close_reason(session.number)
        if not session.end.link.greeted:
            return
        intervals = 2.0 if reason.startswith("lifeless") else 1.0
        self.world.mark("silent peer given up" if intervals > 1.0 else "silent peer pinged")
        if silent_s < intervals * self.ping_interval_s - 1e-6:
            raise Violation("deadline", f"after {silent_s:.3f} s: {reason or 'a ping'}")
