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

#: The memory of a held datagram in addition to its bytes.
_HELD_BYTES: Final = 100
#: Seconds between two log lines about refused or dropped datagrams.
_LOG_EVERY_S: Final = 60.0


@final
class DatagramMarks:
    """The limits for the sources of one socket.

    :param most: how many sources may have a session.
    :param most_per_host: the same for each host that is not this machine.
    :param held_bytes: how many bytes of datagrams of one source may wait while its session is not
        read from; for all sources together, eight times as many.
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
        #: Whether its session is not read from at the moment.
        self.waits = False
        #: Whether its session reads no more.
        self.over = False
        self.held: deque[bytes] | None = None
        self.held_bytes: int = 0


@final
class Datagrams:
    """The sources of one socket.

    :param turn: handles their sessions.
    :param door: their protocol.

    Attributes: ``count`` of sources that have a session; ``held_bytes`` of all of them;
    ``refused``, lost datagrams of sources without a session, and ``dropped``, those of sources with
    one.
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
        """How many sources have a session."""
        return len(self._by_number)

    def number_of(self, name: str) -> int:
        """The number of a source's session; 0 if it has none."""
        source = self._sources.get(name)
        return 0 if source is None else source.number

    # -- sources --------------------------------------------------------------------------------

    def admits(self, host: str, is_local: bool, now: float) -> bool:
        """Return whether a new source of that host may have a session; then call :meth:`opened`. If
        not, count its datagram as refused.
        """
        has_room = self._turn.hub.has_room()
        reason = self._connected.admit(host, is_local=is_local, has_room=has_room)
        if reason:
            self.refuse(reason, now)
        return not reason

    def refuse(self, reason: str, now: float) -> None:
        """Count a datagram of a source that gets no session."""
        self.refused += 1
        self._note(f"refused a source: {reason}", now)

    def opened(self, name: str, host: str, number: int, wire: Wire, now: float) -> None:
        """Open a session with a new number for an admitted source."""
        source = _Source(name, host, number, now)
        self._sources[name] = source
        self._by_number[number] = source
        self._follow(source, self._turn.opened(number, self.door, wire, host, now))
        self._turn.wake(self.due())

    def closed(self, number: int) -> None:
        """Forget the source of a session that has ended, after ``Close``."""
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
        """Pass a datagram to its source's session; an empty one only keeps the session alive."""
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
        """Pass on the waiting datagrams of a session that is read from again, after ``Resume``."""
        source = self._by_number.get(number)
        if source is None:
            return
        source.waits = False
        while source.held and not (source.waits or source.over):
            data = source.held.popleft()
            self._count_held(source, -(len(data) + _HELD_BYTES))
            self._follow(source, self._turn.received(number, data, now))

    def drop(self, now: float) -> None:
        """Count a lost datagram of a session, received or sent."""
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
        """Log the first of many lost datagrams, and later their number."""
        if now >= self._log_at + _LOG_EVERY_S:
            self._log_at = now
            text = f"UDP: {what} ({self.refused} refused, {self.dropped} dropped since the start)"
            self._turn.warn(text)

    # -- time -----------------------------------------------------------------------------------

    def due(self) -> float:
        """When the next session has been idle for too long; infinity for never."""
        for source in self._sources.values():
            return source.heard_at + self._marks.idle_s
        return math.inf

    def on_deadline(self, now: float) -> None:
        """End the sessions that were idle for too long."""
        while self._sources and self.due() <= now:
            source = next(iter(self._sources.values()))
            # Its next datagram opens another session.
            del self._sources[source.name]
            source.over = True
            self._forget_held(source)
            self._turn.finish_session(
                source.number, f"no datagram for {self._marks.idle_s:g} s", now
            )
