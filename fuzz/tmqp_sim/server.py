"""The simulated server: the real turn, hub, broker and door, between a simulated network and disk.

Nothing is decided here.  A session carries bytes between its end of a link and the turn, as a
connection over a socket does; the turn's world effects are carried out in virtual time.  The server
may be frozen for a while (a virtual machine that is moved) and it may crash: then its memory is
gone, and what the disk had is all that a new one begins with.

The server's clock is not the world's.  A life may begin on a machine that has just started: its
monotonic clock then starts near zero, and whatever was saved before lies before that clock's start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tmqp_server.doors.port import Door
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.draining import SERVING
from tmqp_server.shell.outbound import FLUSHING, OPEN, Outbound
from tmqp_server.shell.rates import RateLimits
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import (
    ERROR,
    Abandon,
    Ask,
    Call,
    CatchUp,
    Close,
    CloseStore,
    Drained,
    DrainEnded,
    GoOn,
    Log,
    ReadBatch,
    Resume,
    Secure,
    StartWriting,
    StopListening,
    Tell,
    Wake,
    WorldEffect,
    WriteBatch,
)
from tmqp_sim.admission import Admission
from tmqp_sim.books import Ballast
from tmqp_sim.built import Built
from tmqp_sim.cursed import CURSED, Cursed, CursedDoor
from tmqp_sim.datagrams import UdpSocket
from tmqp_sim.host import WEB, Guest, Peer
from tmqp_sim.network import Link
from tmqp_sim.outside import Outside
from tmqp_sim.paces import Paces
from tmqp_sim.promptness import Promptness
from tmqp_sim.rounds import Rounds
from tmqp_sim.sessions import Session
from tmqp_sim.turns import Turns
from tmqp_sim.world import Violation, World

__all__ = ["Server"]

#: How long a machine has been up at most when a server starts after a reboot, in seconds.
_LONGEST_BOOT_S: Final = 2.0
#: How many of the connections are read and written by tasks.
_BY_TASKS: Final = 0.25
#: How long it takes at most to change to TLS, in seconds.
_LONGEST_HANDSHAKE_S: Final = 0.2


class Server:
    """One server over its several lives.

    :param build: makes what a life that begins consists of.
    :param began: called when it is up, with the new turn in place.
    :param store_works: carries out what the turn wants from the store.
    :param outside: answers what is asked of the server's own code.
    :param lateness_s: timers are served up to so much too late.
    :param ping_interval_s: after how much silence the door pings.
    :param name: which of several it is.
    :param rates: how fast its clients may send.
    """

    _ballast: Ballast

    def __init__(
        self,
        world: World,
        build: Callable[[], Built],
        began: Callable[[], None],
        store_works: Callable[[WorldEffect], None],
        outside: Outside,
        lateness_s: float,
        ping_interval_s: float,
        name: str = "server",
        rates: RateLimits | None = None,
    ) -> None:
        self.world = world
        self.name = name
        self.lateness_s = lateness_s
        self.ping_interval_s = ping_interval_s
        self.lives = 0
        #: When the clock of this life read zero, in the world's time: before it begins, at first.
        self.booted_at = -world.child(f"{name} boot").random() * _LONGEST_BOOT_S
        self.up = self.asleep = False
        self.slept_at = 0.0
        self.listens = True  # it does not while it drains
        self.drained: Callable[[], None] | None = None  # called when it has
        self.sessions: dict[int, Session] = {}
        #: The turn will be called for the next portion.
        self.goes_on = False
        self.paces = Paces(self, lateness_s, rates)
        self.promptness = Promptness(self, lateness_s)
        self.turns = Turns(self)
        self.outside = outside
        outside.server = self
        self._build = build
        self._began = began
        self._random = world.child(name)
        self._reboots = world.child("reboots" if name == "server" else f"{name} reboots")
        self._tasks = world.child(f"{name} tasks")
        self.rounds = Rounds(self, name)
        self._knocking: list[Link] = []
        self._held: dict[int, Link] = {}  # they came too fast, and have not begun
        self._unheard: list[Callable[[], None]] = []
        self._due = self.drains_until = math.inf  # at the latter what is in flight goes back
        self._attending = self._waking = False
        self._starters = self._starters_with(store_works)
        self._peers: list[Peer] = []
        self.admission = Admission(world)
        self.turn: Turn
        self._door: Door
        self._web: Door | None = None
        self._foreign: Door | None = None
        self._others: Sequence[tuple[str, Door]] = ()
        self.udp: UdpSocket | None = None  # where datagrams come in
        self._strangely = world.child(f"{name} foreign")
        self._handshakes = world.child(f"{name} handshakes")
        #: So many of a thousand connections come in by the door of another kind.
        self.foreign_share = 0
        self._begin_portion: Callable[[], None] | None = None

    def _starters_with(
        self, store_works: Callable[[WorldEffect], None]
    ) -> dict[type, Callable[[Any], None]]:
        """What the world does for the turn, by class of effect."""
        return {
            **dict.fromkeys((WriteBatch, ReadBatch, CatchUp, CloseStore), store_works),
            StartWriting: self._start_writing,
            Resume: self._resume,
            Secure: self._secure,
            Close: self._close,
            GoOn: self._go_on,
            Wake: self._wake_up,
            Log: self._log,
            Ask: self.outside.ask,
            Call: self.outside.call,
            Tell: self.outside.tell,
            Abandon: self.outside.abandon,
            Drained: self.outside.drained,
            StopListening: self._stop_listening,
            DrainEnded: self._end_drain,
        }

    @property
    def hub(self) -> Hub:
        """The hub of this life."""
        return self.turn.hub

    @property
    def door(self) -> Door:
        """By which clients of TMQP come in."""
        return self._door

    @property
    def readers(self) -> Mapping[int, Session]:
        """Its sessions by number, as the event loop sees them."""
        return self.sessions

    @property
    def guests(self) -> Mapping[int, Guest]:
        """Its sessions by number."""
        return self.sessions

    def join(self, peer: Peer, starters: Mapping[type, Callable[[Any], None]]) -> None:
        """Have somebody carry out effects that are nobody else's."""
        self._peers.append(peer)
        self._starters.update(starters)

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
        self.turn = built.turn
        self._door = built.door
        self._web = built.web
        self._foreign = built.foreign
        self._others = built.others
        self.udp = None
        if built.datagrams is not None:
            self.udp = UdpSocket(self, built.datagrams, self.lateness_s)
        self._cursed_door = CursedDoor(built.door, self._random)
        self._ballast = built.ballast
        self._begin_portion = built.begin_portion
        self.up = True
        self.listens = True
        self._due = math.inf
        self.goes_on = False
        self.admission.begin()
        self.world.note(self.name, "starts, life", self.lives)
        self.outside.begin()
        self.paces.begin()
        self.turns.begin()
        self._began()
        self.turn.on_deadline(self.now)
        self.attend()
        self._watch()

    def crash(self) -> None:
        """The process is gone, with all that it had in memory."""
        if not self.up:
            return
        self.world.note(self.name, "crashes")
        self.world.mark("server crashed")
        self.up = False
        self.asleep = False
        self._due = math.inf
        for session in list(self.sessions.values()):
            session.over = True
            session.end.link.cut(self._random.random() * 0.3, 0.0, "the server is gone")
        self.sessions.clear()
        for link in [*self._knocking, *self._held.values()]:
            link.cut(0.1, 0.0, "the server is gone")
        self._knocking.clear()
        self._held.clear()
        self._unheard.clear()
        for peer in self._peers:
            peer.crash()

    def freeze(self, duration_s: float) -> None:
        """The process is suspended; its connections do not."""
        if self.up and not self.asleep:
            self.asleep = True
            self.slept_at = self.now
            self.world.note(self.name, "stands still for", duration_s)
            self.world.mark("server frozen")
            self.world.after(duration_s, self.wake, self.lives)

    def wake(self, life: int) -> None:
        """The process continues, if it still is the same."""
        if not self.asleep or life != self.lives:
            return
        self.asleep = False
        self.turns.slept(self.slept_at)
        self._waking = True
        self.world.note(self.name, "goes on")
        for link in self._knocking:
            self.accept(link)
        self._knocking.clear()
        unheard, self._unheard = self._unheard, []
        for tell in unheard:
            self.begin_portion()
            tell()
        for session in list(self.sessions.values()):
            session.writable()
            self.world.after(0.0, session.readable)
        for peer in self._peers:
            peer.wake()
        self._waking = False
        if self._due <= self.now:
            self._serve(self._due)
        self._watch()

    def hear(self, tell: Callable[[], None]) -> None:
        """Let the turn be told something from outside, as soon as the process runs."""
        if self.asleep:
            self._unheard.append(tell)
        else:
            self.begin_portion()
            tell()
            self.attend()

    def hear_in(self, life: int, tell: Callable[[], None]) -> None:
        """Let the turn be told something, if its process is still the same."""
        if self.up and life == self.lives:
            self.hear(tell)

    def begin_portion(self) -> None:
        """The turn is called: what it processes now keeps others waiting."""
        self.turns.woke()
        if self._begin_portion is not None:
            self._begin_portion()

    def close_sessions(self, reason: str) -> None:
        """Say goodbye to everybody, and continue."""
        for number, session in list(self.sessions.items()):
            if not session.cursed:
                self.hub.close(number, reason, self.now)
        self.promptness.forgive_drops()
        self.settle()

    def stop(self, reason: str) -> None:
        """Close every session, those to come as well."""
        self.turn.close_all(reason, self.now)
        self.promptness.forgive_drops()
        self.attend()

    def drain(
        self,
        bound_s: float,
        drained: Callable[[], None],
        *,
        stops: bool = True,
        asks: Callable[[bool], None] | None = None,
    ) -> None:
        """Take no more, and wait so long at most for what is unacknowledged.

        :param drained: called when clients have been told to go, and the process is to end.
        :param stops: it is to end then; if not, it continues for its operators.
        :param asks: how one of these asks for it; None where a signal does.
        """
        self.drained = drained
        self.turn.draining.bound_s = bound_s
        if self.turn.draining.state == SERVING:
            self.drains_until = self.now + bound_s
        if asks is None:
            self.turn.drain(stops, self.now)
        else:
            asks(stops)
        self.attend()

    def _stop_listening(self, _effect: StopListening) -> None:
        self.listens = False

    def _end_drain(self, effect: DrainEnded) -> None:
        unanswered = self.turn.draining.in_flight  # before clients were told to go
        if unanswered and self.now < self.drains_until:
            text = f"{unanswered} deliveries are in hand, and the server had time to wait for them"
            raise Violation("drain", text)
        self.world.mark("drained with deliveries in hand" if unanswered else "drained")
        self.promptness.forgive_drops()
        if not effect.stops:
            self.world.mark("drained, and goes on for its operators")
        elif self.drained is not None:
            drained, self.drained = self.drained, None
            drained()

    def drop_sessions(self) -> None:
        """Whoever has not gone by now has had his time."""
        for session in list(self.sessions.values()):
            self.turn.closed(session.number, self.now)
            session.close("the server stopped")
        self.attend()

    # -- links ----------------------------------------------------------------------------------

    def accept(self, link: Link) -> None:
        """Somebody connects."""
        if not self.up or not self.listens:
            link.cut(0.0, 0.0, "connection refused")
            return
        if self.asleep:
            self._knocking.append(link)
            return
        link.life = self.lives
        session = Session(self, link)
        session.host = link.host or f"host {session.number}"
        if not self.admission.admits(session.host, has_room=self.hub.has_room()):
            session.over = True
            session.end.close()
            return
        pause_s = self.paces.pause(session.number)
        if pause_s > 0.0:
            self._held[session.number] = link
            self.world.after(pause_s, self.hear_in, self.lives, partial(self._open, session))
        elif pause_s < 0.0:
            self.admission.leaves(session.host)
            session.over = True
            session.end.close()
        else:
            self._open(session)

    def _open(self, session: Session) -> None:
        """A connection begins."""
        self._held.pop(session.number, None)
        session.end.owner = session
        self.sessions[session.number] = session
        host = session.host
        door = self._cursed_door if host.startswith(CURSED) else self._door
        other = next((each for each in self._others if host.startswith(each[0])), None)
        if host.startswith(WEB) and self._web is not None:
            door = self._web
            self.promptness.asking_by_themselves = True
        elif other is not None:
            door = other[1]
        elif (
            self._foreign is not None
            and door is self._door
            and self.foreign_share > self._strangely.randrange(1000)
        ):
            door = self._foreign
            self.world.mark("connected by a door of another kind")
        session.cursed = door is self._cursed_door
        session.by_tasks = self._tasks.random() < _BY_TASKS
        session.is_exact = not session.by_tasks
        host = self.paces.address(session.number, host)
        session.follow(self.turn.opened(session.number, door, session, host, self.now))

    def forget(self, session: Session) -> None:
        """A connection has ended."""
        if self.sessions.pop(session.number, None) is not None:
            self.admission.leaves(session.host)
            self.paces.forget(session.number)

    # -- the world's part -----------------------------------------------------------------------

    def settle(self) -> None:
        """Let the turn see to what the hub was told directly."""
        self.turn.perform((), self.now)
        self.attend()

    def attend(self) -> None:
        """Carry out what the turn has for the world."""
        if self._attending or not self.up:
            return
        self._attending = True
        life = self.lives
        try:
            while effects := self.turn.take_effects():
                for effect in effects:
                    self._starters[type(effect)](effect)
                    if life != self.lives or not self.up:
                        return
        finally:
            self._attending = False
        self._ballast.even_out()
        outbound = self.turn.outbound
        is_waiting = self.hub.is_waiting
        for number, session in self.sessions.items():
            out = outbound(number)
            if out is None:
                continue
            quiet = out.state == OPEN and not (out.bytes or out.blocked)
            if not quiet or session.waited or session.blocked or is_waiting(number):
                self._look_at(session, out)
        # Who has slept has missed much, and in a round much is put off.
        if not self._waking and not self.rounds.reading:
            self.promptness.check()
            if self.udp is not None:
                self.udp.check()
            for peer in self._peers:
                peer.check()

    def _look_at(self, session: Session, out: Outbound) -> None:
        """Note what is rare."""
        if out.blocked != session.blocked:
            session.blocked = out.blocked
            self.world.mark("session blocked" if out.blocked else "session unblocked")
        if out.state == FLUSHING and session.flushing_since == math.inf:
            session.flushing_since = self.world.now
            self.world.mark("flushed at the end")
        if out.bytes and not session.waited:
            session.progress_at = self.world.now
        session.waited = out.bytes
        if out.bytes or self.hub.is_waiting(session.number):
            session.busy_at = self.world.now

    def _start_writing(self, effect: StartWriting) -> None:
        session = self.sessions.get(effect.session)
        if session is not None:
            self.world.after(0.0, session.writable)

    def _resume(self, effect: Resume) -> None:
        session = self.sessions.get(effect.session)
        if session is not None:
            session.resume()
        elif self.udp is not None and self.udp.has(effect.session):
            self.begin_portion()
            self.udp.resume(effect.session)

    def _secure(self, effect: Secure) -> None:
        session = self.sessions.get(effect.session)
        if session is not None:
            self.world.mark("changed to TLS")
            session.secure(self._handshakes.uniform(0.0, _LONGEST_HANDSHAKE_S))
        elif self.udp is not None and self.udp.has(effect.session):
            self.udp.secure(effect.session)

    def _close(self, effect: Close) -> None:
        session = self.sessions.get(effect.session)
        if session is not None:
            session.close(effect.reason)
        elif self.udp is not None and self.udp.has(effect.session):
            self.udp.close(effect.session, effect.reason)

    def _go_on(self, _effect: GoOn) -> None:
        self.goes_on = True
        self.world.after(0.0, self._portion, self.lives)

    def _portion(self, life: int) -> None:
        if life != self.lives or not self.up:
            return
        if self.asleep:
            self._unheard.append(lambda: self._portion(life))
            return
        self.goes_on = False
        self.world.mark("portion continued")
        self.begin_portion()
        self.turn.go_on(self.now)
        self.attend()

    def _log(self, effect: Log) -> None:
        if isinstance(effect.error, Violation):
            raise effect.error  # what a checker found in the middle of a turn
        if isinstance(effect.error, Cursed):
            self.world.mark("faulty session ended")
        elif effect.level >= ERROR and effect.error is not None:
            raise Violation("fault", f"{effect.text}: {effect.error!r}") from effect.error
        self.world.note("log", effect.text)

    # -- its timers -----------------------------------------------------------------------------

    def _wake_up(self, _effect: Wake) -> None:
        self._watch()

    def _watch(self) -> None:
        """See to it that the earliest deadline is kept, late as it may be."""
        due = self.turn.next_deadline()
        if due < self._due:
            self._due = due
            late = self._random.random() * self.lateness_s if self.lateness_s else 0.0
            when = self._world_time(due)
            self.world.at(when + (late if due > self.now else 0.0), self._serve, due)

    def _serve(self, due: float) -> None:
        if due != self._due or not self.up or self.asleep:
            return
        self._due = math.inf
        asked: list[Session] = []
        for session in self.sessions.values():
            deadline = self.hub.session_deadline(session.number)
            if deadline is not None and deadline <= self.now:
                asked.append(session)
        silent = [self.world.now - session.received_at for session in asked]
        blamed = [self._may_be_asked(session) for session in asked]
        self.turn.on_deadline(self.now)
        self.attend()
        for session, silent_s, may in zip(asked, silent, blamed, strict=True):
            if may:
                self._check_keep_alive(session, silent_s)
        if self.up:
            self._watch()

    def _may_be_asked(self, session: Session) -> bool:
        """Whether a session reads: of one that does not the stall time judges."""
        out = self.turn.outbound(session.number)
        reads = self.hub.reads(session.number)  # the deadline of one that does not is its own
        return out is not None and not out.bytes and session.end.link.greeted and reads

    def _check_keep_alive(self, session: Session, silent_s: float) -> None:
        """Nobody is asked while he speaks, nor given up before he had his two intervals (B4)."""
        intervals = 2.0 if session.reason.startswith("lifeless") else 1.0
        self.world.mark("silent peer given up" if intervals > 1.0 else "silent peer pinged")
        if silent_s < intervals * self.ping_interval_s - 1e-6:
            raise Violation("deadline", f"after {silent_s:.3f} s: {session.reason or 'a ping'}")
