"""A simulated server's connections to its masters: dials, ends of links, and their checker.

Nothing is decided here: the turn's effects are carried out on the simulated network.  A dial may be
refused, lost (nobody answers), answered too late, or broken as soon as it is answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tmqp_server.cluster.link import LinkState
from tmqp_server.shell.world import Dial, HangUp, LinkOutput
from tmqp_sim.network import Broken, End, Link, Network
from tmqp_sim.passages import Passage
from tmqp_sim.server import Server
from tmqp_sim.world import Violation

__all__ = ["CONNECT_TIMEOUT_S", "Master", "Uplinks"]

#: Seconds to connect in.
CONNECT_TIMEOUT_S: Final = 1.0
#: How often a connection that nobody answers is asked for again.
_SYN_EVERY_S: Final = 0.3
#: What rounding and the order of events of one moment may cost, in seconds.
_SLACK_S: Final = 0.001


class Master:
    """Where one master is."""

    def __init__(
        self, server: Server, reachable: Callable[[], bool], begin: Callable[[], Passage]
    ) -> None:
        self.server = server
        #: Whether packets go there at all.
        self.reachable = reachable
        #: Begins the record of one connection.
        self.begin = begin


class _Uplink:
    """One connection to a master, or a try; the turn knows it by its dial."""

    def __init__(self, uplinks: Uplinks, dial: Dial) -> None:
        self.uplinks = uplinks
        self.dial = dial
        self.end: End | None = None
        self.passage: Passage | None = None
        self.began_at = uplinks.server.world.now
        #: When the master last took something, or something began to wait for it.
        self.progress_at = self.began_at
        #: Since when the server stops.
        self.stops_at = math.inf
        #: How it broke, until the process is notified of it.
        self.broke = ""
        self._reading = False

    @property
    def is_current(self) -> bool:
        """The turn has not hung up."""
        return self.uplinks.current.get(self.dial.link) is self

    def readable(self) -> None:
        """Something has come: a task reads a chunk, and the turn is notified of it a moment
        later."""
        server = self.uplinks.server
        if not self.is_current or server.asleep or self.end is None or self._reading:
            return
        data = b"" if self.broke else self.end.read()
        if data is not None:
            self._reading = True
            server.world.after(0.0, server.hear_in, server.lives, partial(self._hand_on, data))

    def _hand_on(self, data: bytes) -> None:
        """The turn may have hung up meanwhile."""
        server = self.uplinks.server
        assert self.end is not None, "it was read from"
        self._reading = False
        if self.broke and not data:
            server.turn.link_failed(self.dial, self.broke, server.now)
        else:
            server.turn.link_read(self.dial, data, server.now)
        self.end.link.greeted = server.turn.links._all[self.dial.link].link.connections > 0
        server.attend()
        if not data and self.is_current:
            raise Violation("cluster", f"{server.name} keeps a connection that has ended")
        self.readable()

    def writable(self) -> None:
        """Send what waits, as far as there is room."""
        server = self.uplinks.server
        if server.asleep or self.end is None or self.passage is None:
            return
        links = server.turn.links
        while self.is_current and (piece := links.piece(self.dial)):
            part = piece[links.offset(self.dial) :]
            try:
                sent = self.end.send(part)
            except Broken as error:
                server.turn.link_failed(self.dial, str(error), server.now)
                break
            if not sent:
                break  # the network says when there is room
            self.progress_at = server.world.now
            self.passage.wrote(part[:sent])
            server.turn.link_taken(self.dial, sent, server.now)
        server.attend()

    def broken(self, reason: str) -> None:
        """The connection broke: reading finds that out."""
        self.broke = self.broke or reason
        self.readable()

    def close(self) -> None:
        """This side ends it."""
        if self.end is not None:
            self.end.close()


class Uplinks:
    """The connections of one server over its lives.

    :param masters: in the order of the turn's links.
    :param loses_dials: so many dials of a thousand fail, as long as the world is not healed.
    """

    def __init__(
        self, server: Server, network: Network, masters: Sequence[Master], loses_dials: int
    ) -> None:
        self.server = server
        self.current: dict[int, _Uplink] = {}
        self.loses_dials = loses_dials
        self._network = network
        self._masters = masters
        self._random = server.world.child(f"{server.name} dials")
        self._slack_s = server.lateness_s + _SLACK_S

    # -- effects --------------------------------------------------------------------------------

    def dial(self, dial: Dial) -> None:
        """Try to connect."""
        if dial.link in self.current:
            raise Violation("cluster", f"{self.server.name} has two connections to one master")
        self.current[dial.link] = _Uplink(self, dial)
        chance = self._random
        delay_s = chance.random() * 0.05
        fate = ""
        if chance.randrange(1000) < self.loses_dials:
            fate = chance.choice(("lost", "late", "broken"))
            self.server.world.mark(f"dial {fate}")
        if fate == "late":
            delay_s = CONNECT_TIMEOUT_S + chance.random()
        if fate != "lost":
            self.server.world.after(delay_s, self._connect, dial, fate, self.server.lives)

    def _connect(self, dial: Dial, fate: str, life: int) -> None:
        server = self.server
        if life != server.lives or not server.up:
            return
        uplink = self.current.get(dial.link)
        if uplink is None or uplink.dial is not dial:
            if fate == "late":
                server.hear(lambda: server.turn.link_dialled(dial, server.now))
            return
        master = self._masters[dial.link]
        if not master.reachable():
            server.world.after(_SYN_EVERY_S, self._connect, dial, fate, life)
            return
        if not master.server.up:
            server.world.mark("dial refused")
            server.hear(lambda: server.turn.link_failed(dial, "Connection refused", server.now))
            return
        link = self._network.open()
        link.host = f"{server.name} {link.number}"  # one for each: a slave comes back at once
        uplink.end = link.client
        uplink.passage = master.begin()
        link.client.owner = uplink
        server.hear(lambda: self._dialled(uplink))
        master.server.accept(link)
        if fate == "broken":
            link.cut(0.0, 0.0)

    def _dialled(self, uplink: _Uplink) -> None:
        if uplink.is_current:
            uplink.progress_at = self.server.world.now
            self.server.turn.link_dialled(uplink.dial, self.server.now)
        else:
            uplink.close()  # it slept, and gave up before it heard of it

    def output(self, effect: LinkOutput) -> None:
        """Bytes wait."""
        uplink = self.current.get(effect.dial.link)
        if uplink is not None and uplink.dial is effect.dial:
            uplink.progress_at = self.server.world.now
            self.server.world.after(0.0, uplink.writable)

    def hang_up(self, effect: HangUp) -> None:
        """It is over.

        :raises Violation: when a master is given up that takes what it is sent.
        """
        uplink = self.current.pop(effect.dial.link)
        server = self.server
        link = server.turn.links._all[effect.dial.link].link
        problem = link.problem if link.state == LinkState.WAITING else ""
        if problem.startswith("it took nothing"):
            server.world.mark("master given up: stalled")
            still_s = server.world.now - uplink.progress_at
            if still_s < server.turn.marks.stall_timeout_s - _SLACK_S:
                raise Violation("network", f"{server.name} gives up a master that reads")
        elif problem.startswith("no connection within"):
            server.world.mark("dial given up")
        if uplink.passage is not None and uplink.passage.is_torn:
            server.world.mark("message for a master torn")
        uplink.close()

    # -- the process ----------------------------------------------------------------------------

    def crash(self) -> None:
        """The process is gone."""
        for uplink in self.current.values():
            if uplink.end is not None:
                uplink.end.closed = True
                late_s = self._random.random() * 0.3
                uplink.end.link.cut(0.0, late_s, "the server is gone")
        self.current.clear()

    def wake(self) -> None:
        """The process continues."""
        for uplink in list(self.current.values()):
            uplink.writable()
            uplink.readable()

    # -- the checker ----------------------------------------------------------------------------

    @property
    def links(self) -> list[Link]:
        """The connections of this moment."""
        found = [each.end.link for each in self.current.values() if each.end is not None]
        return [link for link in found if not link.gone]

    def standing(self, index: int) -> Passage | None:
        """The record of the connection to a master, if it is one that carries bytes."""
        uplink = self.current.get(index)
        if uplink is None or uplink.end is None or uplink.end.link.gone or uplink.end.link.dead:
            return None
        return uplink.passage

    def check(self) -> None:
        """Look at everything, after a turn.

        :raises Violation: when something is late or forgotten.
        """
        server = self.server
        now = server.now
        marks = server.turn.marks
        for carried in server.turn.links._all:
            link = carried.link
            uplink = self.current.get(carried.index)
            name = f"{server.name}'s link to {link.node_id}"
            if uplink is None:
                due = link.next_deadline()
                late = due is not None and due + self._slack_s < now
                if link.state == LinkState.WAITING and late:
                    raise Violation("promptness", f"{name} is not tried again")
                continue
            age_s = server.world.now - uplink.began_at
            if link.state == LinkState.CONNECTING:
                if age_s > CONNECT_TIMEOUT_S + self._slack_s:
                    raise Violation("promptness", f"{name} has been tried for {age_s:.3f} s")
                continue
            waiting = carried.out.bytes
            if not waiting and link.state == LinkState.UP and len(link.outbox):
                raise Violation("promptness", f"{name} idles, and {len(link.outbox)} wait")
            still_s = server.world.now - uplink.progress_at
            if waiting and still_s > marks.stall_timeout_s + self._slack_s:
                raise Violation("promptness", f"{name} stalls, and is not given up")
            if link.state == LinkState.CLOSED:
                uplink.stops_at = min(uplink.stops_at, server.world.now)
                if server.world.now - uplink.stops_at > marks.flush_timeout_s + self._slack_s:
                    raise Violation("promptness", f"{name} is not closed, and the server stops")
