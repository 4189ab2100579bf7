"""The server's ends of links: they carry bytes between the simulated network and the turn.

Nothing is decided here.  Where the event loop can watch a socket, the turn is notified of each
chunk as it comes; where tasks read and write (TLS, trio) it hears a moment later, when the
connection may already be over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tmqp_server.shell.steps import EFFECTS, END, READ, WAIT
from tmqp_server.shell.world import INTERNAL_ERROR, Wire
from tmqp_sim.host import SELF_ASKING, Host
from tmqp_sim.network import Broken, End, Link
from tmqp_sim.outside import Outside
from tmqp_sim.paces import Paces
from tmqp_sim.promptness import Promptness
from tmqp_sim.rounds import Rounds
from tmqp_sim.world import Violation

__all__ = ["Carrier", "Session"]


class Carrier(Host, Protocol):
    """The server, as its sessions see it."""

    promptness: Promptness
    paces: Paces
    outside: Outside
    rounds: Rounds

    def attend(self) -> None:
        """Carry out what the turn has for the world."""

    def hear_in(self, life: int, tell: Callable[[], None]) -> None:
        """Let the turn be told something, if its process is still the same."""

    def begin_portion(self) -> None:
        """The turn is called: what it processes now keeps others waiting."""

    def forget(self, session: Session) -> None:
        """A connection has ended."""


class Session(Wire):
    """The server's end of one link."""

    def __init__(self, server: Carrier, link: Link) -> None:
        self.server = server
        self.number = link.number
        self.end: End = link.server
        self.step = READ
        self.over = False
        self.reason = ""
        self.received_at = server.world.now
        self.blocked = False
        self.flushing_since = math.inf
        #: Bytes that waited when it was last looked at, and when the peer last took some.
        self.waited = 0
        self.progress_at = server.world.now
        self.busy_at = -math.inf
        self.host = ""
        #: It came through a door that fails now and then.
        self.cursed = False
        #: How the connection broke, until that is read.
        self.broke = ""
        #: Tasks read and write, as for TLS: the turn hears a moment later what came of it.
        self.by_tasks = False
        self._reading = False
        self._writing = False
        self._shakes_hands = False

    def send(self, data: bytes) -> int:
        """As a socket's: what there is room for.

        :raises OSError: when the connection is broken.
        """
        self.server.outside.check_sent(self.number)
        if self._shakes_hands:
            text = f"session {self.number} is sent something in the middle of a handshake"
            raise Violation("stopped", text)
        try:
            return self.end.send(data)
        except Broken as error:
            raise ConnectionResetError(str(error)) from None

    def readable(self) -> None:
        """Bytes have come: one chunk is processed a turn, or one of each connection of a round."""
        if not self._is_read():
            return
        rounds = self.server.rounds
        if rounds.are_held and not self.by_tasks:
            rounds.plan()
        else:
            self.read()

    def has_chunk(self) -> bool:
        """Whether the event loop would find something to read, and call a reader."""
        return not self.by_tasks and self._is_read() and (bool(self.broke) or self.end.has_more())

    def _is_read(self) -> bool:
        server = self.server
        return not (server.asleep or self.over or self.step != READ or self._reading)

    def read(self) -> None:
        """Have the next chunk processed."""
        server = self.server
        if not self._is_read():
            return  # a chunk before it in the round has ended it
        data = b"" if self.broke else self.end.read()
        if data is None:
            return
        asks = self.host.startswith(SELF_ASKING)
        server.promptness.check_reading(self.number, asks_by_itself=asks)
        if self.by_tasks:
            self._reading = True
            self._soon(partial(self._hand_on, data))
        else:
            server.begin_portion()
            self._hand_on(data)

    def _hand_on(self, data: bytes) -> None:
        server = self.server
        self._reading = False
        if data:
            self.received_at = server.world.now
        if self.broke and not data:
            self.follow(server.turn.broken(self.number, self.broke, server.now))
        else:
            server.paces.read(self.number)
            step = server.turn.received(self.number, data, server.now)
            server.paces.was_read(self.number, len(data))
            self.follow(step)

    def follow(self, step: int) -> None:
        """Do what the turn says."""
        server = self.server
        if not self.over:
            self.step = step & ~EFFECTS
            server.promptness.check_step(self.number, self.step)
            if self.step == WAIT and self.blocked:
                server.world.mark("reading held back")
        server.attend()
        if self.step == READ and not self.over:
            server.world.after(0.0, self.readable)

    def resume(self) -> None:
        """Read again."""
        self.step = READ
        self.server.promptness.resumed(self.number)
        self.server.world.after(0.0, self.readable)

    def secure(self, delay_s: float) -> None:
        """Change to TLS: so long is it neither read nor written."""
        self._shakes_hands = True
        server = self.server
        server.world.after(delay_s, server.hear_in, server.lives, self._secured)

    def _secured(self) -> None:
        server = self.server
        self._shakes_hands = False
        if self.over:
            return
        if self.broke:
            self.follow(server.turn.broken(self.number, self.broke, server.now))
            return
        server.begin_portion()
        self.follow(server.turn.secured(self.number, server.now))
        self.writable()

    def broken(self, reason: str) -> None:
        """The connection broke: reading finds that out, or writing does."""
        self.broke = self.broke or reason
        self.readable()
        self.writable()

    def writable(self) -> None:
        """There is room, or bytes wait for it: send on."""
        server = self.server
        turn = server.turn
        if server.asleep or self.over or self._writing or self._shakes_hands:
            return
        while piece := turn.piece(self.number):
            sent = 0
            problem = ""
            try:
                sent = self.end.send(piece[turn.offset(self.number) :])
            except Broken as error:
                problem = str(error)
            if not sent and not problem:
                break  # the network says when there is room
            if self.by_tasks:
                self._writing = True
                self._soon(partial(self._tell_written, sent, problem))
                break
            self._tell_sent(sent, problem)
        server.attend()

    def _tell_written(self, sent: int, problem: str) -> None:
        self._writing = False
        self._tell_sent(sent, problem)
        self.writable()

    def _tell_sent(self, sent: int, problem: str) -> None:
        server = self.server
        if problem:
            server.turn.lost(self.number, problem, server.now)
            return
        self.progress_at = server.world.now
        self.waited -= sent
        server.turn.taken(self.number, sent, server.now)
        server.promptness.progressed(self.number)

    def close(self, reason: str) -> None:
        """It is over."""
        server = self.server
        if reason.startswith("slow reader: no progress"):
            server.world.mark("slow reader cut: stalled")
        if reason == INTERNAL_ERROR and not self.cursed:
            raise Violation("fault", f"session {self.number} ended for the fault of another")
        server.promptness.check_end(self, reason)
        self.reason = reason
        self.over = True
        self.step = END
        server.forget(self)
        self.end.close()
        self._soon(self._gone)

    def _soon(self, tell: Callable[[], None]) -> None:
        """Let the turn be told something when the event loop comes to it."""
        self.server.world.after(0.0, self.server.hear_in, self.server.lives, tell)

    def _gone(self) -> None:
        """Its tasks have ended."""
        self.server.turn.closed(self.number, self.server.now)
