"""The peers of one UDP socket: which of them have a session, and when an idle session ends.

UDP has no connections, so each source address counts as one: the first datagram of a *source* opens
a session, and the session ends when its door closes it or when the source was quiet for the idle
time.  Each datagram is one chunk for the session, and each portion that the session has to send
(``DoorSession.next_to_send``) is one datagram.

A source address costs its sender nothing and may be forged.  Sessions are therefore counted
separately from connections: a flood of sources cannot exclude clients of other doors, and existing
sessions stay.  Datagrams for a session that is not read from are kept up to a limit; further ones
are dropped, as a network does.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, final

from tmqp_server.doors.port import Door
from tmqp_server.shell.admitting import Connected
from tmqp_server.shell.connections import Connections
from tmqp_server.shell.steps import EFFECTS, END, WAIT
from tmqp_server.shell.world import Wire

__all__ = ["DatagramMarks", "Datagrams"]

#: What a datagram that is held costs beside its bytes.
_HELD_BYTES: Final = 100
#: Seconds between two log lines about refused or dropped datagrams.
_LOG_EVERY_S: Final = 60.0


@final
class DatagramMarks:
    """What the sources of one socket may cost.

    :param most: sources that have a session, in all.
    :param most_per_host: those of one host that is not this machine.
    :param held_bytes: bytes of datagrams that wait until their session is read again, of one
        source; eight times as many of all.
    :param idle_s: seconds without a datagram after which a session ends.
    """

    __slots__ = ("held_bytes", "idle_s", "most", "most_per_host")

    def __init__(self, most: int, most_per_host: int, held_bytes: int, idle_s: float) -> None:
        self.most = most
        self.most_per_host = most_per_host
        self.held_bytes = held_bytes
        self.idle_s = idle_s


@final
class _Source:
    """A peer that has a session."""

    __slots__ = ("heard_at", "held", "held_bytes", "host", "name", "number", "over", "waits")

    def __init__(self, name: str, host: str, number: int, now: float) -> None:
        self.name = name
        self.host = host
        self.number = number
        self.heard_at = now
        #: Its session is not read at the moment.
        self.waits = False
        #: Its session reads no more.
        self.over = False
        self.held: deque[bytes] | None = None
        self.held_bytes: int = 0


@final
class Datagrams:
    """The sources of one socket.

    :param turn: whose connections they are.
    :param door: the protocol that is spoken.

    Attributes: ``count`` of sources that have a session; ``held_bytes`` of all of them; ``refused``
    and ``dropped``, datagrams that no session got, from sources without and with one.
    """

    def __init__(self, turn: Connections, door: Door, marks: DatagramMarks) -> None:
        self.door = door
        self.held_bytes: int = 0
        self.refused: int = 0
        self.dropped: int = 0
        self._turn = turn
        self._marks = marks
        self._connected = Connected(marks.most, marks.most_per_host)
        #: In the order in which they were last heard of.
        self._sources: dict[str, _Source] = {}
        self._by_number: dict[int, _Source] = {}
        self._log_at = -math.inf

    @property
    def count(self) -> int:
        """Sources that have a session."""
        return len(self._by_number)

    def number_of(self, name: str) -> int:
        """The number of a source's session; 0 if it has none."""
        source = self._sources.get(name)
        return 0 if source is None else source.number

    # -- sources --------------------------------------------------------------------------------

    def admits(self, host: str, is_local: bool, now: float) -> bool:
        """Whether a new source of that host gets a session, which :meth:`opened` is called for
        then; if not, its datagram is counted as refused."""
        has_room = self._turn.hub.has_room()
        reason = self._connected.admit(host, is_local=is_local, has_room=has_room)
        if reason:
            self.refuse(reason, now)
        return not reason

    def refuse(self, reason: str, now: float) -> None:
        """A source gets no session."""
        self.refused += 1
        self._note(f"refused a source: {reason}", now)

    def opened(self, name: str, host: str, number: int, wire: Wire, now: float) -> None:
        """An admitted source has this number, which was never used before."""
        source = _Source(name, host, number, now)
        self._sources[name] = source
        self._by_number[number] = source
        self._follow(source, self._turn.opened(number, self.door, wire, host, now))
        self._turn.wake(self.due())

    def closed(self, number: int) -> None:
        """A session is over, after ``Close``."""
        source = self._by_number.pop(number, None)
        if source is None:
            return
        source.over = True
        self._forget_held(source)
        if self._sources.get(source.name) is source:
            del self._sources[source.name]
        self._connected.leave(source.host)

    # -- datagrams ------------------------------------------------------------------------------

    def received(self, name: str, data: bytes, now: float) -> None:
        """A source that has a session said something; an empty datagram only keeps the session."""
        source = self._sources.pop(name)
        source.heard_at = now
        self._sources[name] = source  # the last one now
        if source.over:
            self.drop(now)
        elif source.waits:
            self._hold(source, data, now)
        elif data:
            self._follow(source, self._turn.received(source.number, data, now))

    def resumed(self, number: int, now: float) -> None:
        """A session is read again, after ``Resume``."""
        source = self._by_number.get(number)
        if source is None:
            return
        source.waits = False
        while source.held and not (source.waits or source.over):
            data = source.held.popleft()
            self._count_held(source, -(len(data) + _HELD_BYTES))
            self._follow(source, self._turn.received(number, data, now))

    def drop(self, now: float) -> None:
        """A datagram of a session, in or out, is lost."""
        self.dropped += 1
        self._note("dropped a datagram", now)

    def _follow(self, source: _Source, step: int) -> None:
        step &= ~EFFECTS
        if step == WAIT:
            source.waits = True
        elif step == END:
            source.over = True
            self._forget_held(source)

    def _hold(self, source: _Source, data: bytes, now: float) -> None:
        size = len(data) + _HELD_BYTES
        most = self._marks.held_bytes
        if (
            source.held_bytes + size > most
            or self.held_bytes + size > 8 * most
            or not self._turn.hub.broker.has_room_for_client(size)
        ):
            self.drop(now)
            return
        if source.held is None:
            source.held = deque()
        source.held.append(data)
        self._count_held(source, size)

    def _count_held(self, source: _Source, size: int) -> None:
        source.held_bytes += size
        self.held_bytes += size
        self._turn.hub.broker.charge(size)

    def _forget_held(self, source: _Source) -> None:
        source.held = None
        self._count_held(source, -source.held_bytes)

    def _note(self, what: str, now: float) -> None:
        """Log the first of many, and how many there were by now."""
        if now >= self._log_at + _LOG_EVERY_S:
            self._log_at = now
            text = f"UDP: {what} ({self.refused} refused, {self.dropped} dropped since the start)"
            self._turn.warn(text)

    # -- time -----------------------------------------------------------------------------------

    def due(self) -> float:
        """When a session has been quiet for too long; infinity for never."""
        for source in self._sources.values():
            return source.heard_at + self._marks.idle_s
        return math.inf

    def on_deadline(self, now: float) -> None:
        """End the sessions that were quiet for too long."""
        while self._sources and self.due() <= now:
            source = next(iter(self._sources.values()))
            # Its next datagram opens another session.
            del self._sources[source.name]
            source.over = True
            self._forget_held(source)
            self._turn.finish_session(
                source.number, f"no datagram for {self._marks.idle_s:g} s", now
            )
