"""The connections to this server's masters: when each is opened, written to, given up and closed.

:class:`~tmqp_server.cluster.link.MasterLink` decides what is sent, and in which order; this module
connects it with the world.  A ``Dial`` identifies one connection from the attempt to its end:
reports about an earlier one are late and ignored.

A link writes one piece at a time.  It takes the next one only when the socket has accepted the
whole previous one, so that whole messages wait where the oldest can be dropped.  A master that
reads nothing for the stall time is given up, like any slow reader; when this server stops, each has
the flush time for its last bytes.  A fault in a link ends only its connection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, final

from tmqp_server.cluster.link import LinkState, MasterLink
from tmqp_server.engine.commands import Command, ReportMaster
from tmqp_server.shell.outbound import Marks, Outbound
from tmqp_server.shell.world import (
    ERROR,
    INFO,
    INTERNAL_ERROR,
    WARNING,
    Dial,
    HangUp,
    LinkOutput,
    Log,
    Wire,
    WorldEffect,
)

__all__ = ["Links"]

#: The size up to which messages of a link are joined into one piece.
_PIECE_BYTES: Final = 262_144
#: How often dropped messages are logged, in seconds.
_TELL_EVERY_S: Final = 10.0
#: A writer sends everything: output for masters is not urgent.
_UNUSED: Final = Wire()


@final
class _Carried:
    """One link, and its connection while there is one."""

    def __init__(self, link: MasterLink, index: int, marks: Marks) -> None:
        self.link = link
        self.index = index
        self.dial: Dial | None = None
        #: When the world must have connected; infinity when it has.
        self.dial_until = math.inf
        self.out = Outbound(index, _UNUSED, link.host, marks)
        self.told_dropped = 0
        self.told_at = -_TELL_EVERY_S

    @property
    def connected(self) -> bool:
        """Whether it is connected, and not only trying to connect."""
        return self.dial is not None and self.dial_until == math.inf


@final
class Links:
    """The links of one server; calls return commands for the broker.

    :param world: gets effects and log lines.
    :param masters: the links, in the order in which ``Dial`` counts them.
    :param marks: how long a master may read nothing.
    :param connect_timeout_s: the timeout for connecting.
    """

    def __init__(
        self,
        world: list[WorldEffect],
        masters: Sequence[MasterLink],
        marks: Marks,
        connect_timeout_s: float,
    ) -> None:
        self._world = world
        self._marks = marks
        self._connect_timeout_s = connect_timeout_s
        self._all: list[_Carried] = []
        for index, link in enumerate(masters):
            self._all.append(_Carried(link, index, marks))
        self._reported = not self._all

    def _find(self, dial: Dial) -> _Carried | None:
        carried = self._all[dial.link]
        return carried if carried.dial is dial else None

    # -- what the world reports ------------------------------------------------------------------

    def dialled(self, dial: Dial, now: float) -> None:
        """Handle that a connection was established."""
        carried = self._find(dial)
        if carried is None:
            return
        carried.dial_until = math.inf
        carried.out = Outbound(carried.index, _UNUSED, carried.link.host, self._marks)
        carried.link.opened(now)

    def failed(self, dial: Dial, problem: str, now: float) -> list[Command]:
        """Handle that connecting has failed, or that a connection was lost; *problem* says why."""
        carried = self._find(dial)
        if carried is None:
            return []
        return self._fail(carried, problem, now)

    def read(self, dial: Dial, data: bytes, now: float) -> list[Command]:
        """Handle received bytes of a master; no bytes at the end of its stream."""
        carried = self._find(dial)
        if carried is None:
            return []
        link = carried.link
        before = link.connections
        try:
            commands = link.receive(data, now) if data else link.lost("", now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            return self._blame(carried, error, now)
        if link.connections != before:
            self._log(INFO, link, "connected")
        if not data or not link.has_connection:
            self._hang_up(carried)
            self._log_problem(carried, now)
        return commands

    def piece(self, dial: Dial) -> bytes:
        """Return the next bytes to write, from :meth:`offset` on; empty when the writer has
        finished."""
        carried = self._find(dial)
        return b"" if carried is None else carried.out.piece()

    def offset(self, dial: Dial) -> int:
        """Return where in its piece a writer continues."""
        carried = self._find(dial)
        return 0 if carried is None else carried.out.offset

    def taken(self, dial: Dial, count: int, now: float) -> None:
        """Handle that the transport has accepted *count* bytes of the piece."""
        carried = self._find(dial)
        if carried is None:
            return
        carried.out.taken(count, now)
        carried.link.note_written(count)
        self._feed(carried, now)

    # -- what has to be done ---------------------------------------------------------------------

    def feed(self, now: float) -> None:
        """Write the output of the links, and log the messages that they dropped."""
        for carried in self._all:
            self._feed(carried, now)
            dropped = carried.link.outbox.dropped
            if dropped != carried.told_dropped and now - carried.told_at >= _TELL_EVERY_S:
                count = dropped - carried.told_dropped
                carried.told_at = now
                carried.told_dropped = dropped
                text = f"{count} messages given up: the buffer is full"
                self._log(WARNING, carried.link, text)

    def _feed(self, carried: _Carried, now: float) -> None:
        dial = carried.dial
        out = carried.out
        if dial is None or carried.dial_until < math.inf or out.bytes:
            return
        link = carried.link
        data = link.take(_PIECE_BYTES)
        if data:
            out.give(data, now)
            if not out.writing:
                out.writing = True
                self._world.append(LinkOutput(dial))
        elif link.state == LinkState.CLOSED:
            self._hang_up(carried)

    def close(self, now: float) -> list[Command]:
        """Say goodbye to every master, and do not connect again, because this server stops."""
        commands: list[Command] = []
        for carried in self._all:
            commands += carried.link.close(now)
            if not carried.connected:
                self._hang_up(carried)
            else:
                self._feed(carried, now)
                carried.out.finish(now)
        return commands

    # -- time ------------------------------------------------------------------------------------

    def due(self) -> float:
        """When :meth:`on_deadline` has something to do; infinity for never."""
        earliest = math.inf
        for carried in self._all:
            earliest = min(earliest, self._due(carried))
        return earliest

    def _due(self, carried: _Carried) -> float:
        link = carried.link
        due = min(carried.dial_until, carried.out.due())
        if carried.dial_until == math.inf and link.state != LinkState.CLOSED:
            deadline = link.next_deadline()
            if deadline is not None:
                due = min(due, deadline)
        if link.outbox.dropped != carried.told_dropped:
            due = min(due, carried.told_at + _TELL_EVERY_S)
        return due

    def on_deadline(self, now: float) -> list[Command]:
        """Do what is due: connect, ping or give up."""
        commands: list[Command] = []
        if not self._reported:
            self._reported = True
            for carried in self._all:
                link = carried.link
                commands.append(ReportMaster(link.node_id, link.host, False))
        for carried in self._all:
            if self._due(carried) <= now:
                commands += self._serve(carried, now)
        return commands

    def _serve(self, carried: _Carried, now: float) -> list[Command]:
        link = carried.link
        if carried.dial is None:
            if link.state == LinkState.WAITING:
                self._try(carried, now)
            return []
        if carried.dial_until <= now:
            problem = f"no connection within {self._connect_timeout_s:g} seconds"
            return self._fail(carried, problem, now)
        if carried.out.due() <= now:
            problem = f"it took nothing for {self._marks.stall_timeout_s:g} seconds"
            return self._fail(carried, problem, now)
        deadline = link.next_deadline()
        if deadline is None or deadline > now:
            return []
        try:
            commands = link.on_deadline(now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            return self._blame(carried, error, now)
        if not link.has_connection:
            self._hang_up(carried)
            self._log_problem(carried, now)
        return commands

    def _try(self, carried: _Carried, now: float) -> None:
        deadline = carried.link.next_deadline()
        if deadline is None or deadline > now:
            return
        carried.link.dialling(now)
        dial = Dial(carried.index)
        carried.dial = dial
        carried.dial_until = now + self._connect_timeout_s
        self._world.append(dial)

    # -- the end of a connection -----------------------------------------------------------------

    def _fail(self, carried: _Carried, problem: str, now: float) -> list[Command]:
        commands: list[Command] = []
        if carried.connected:
            commands = carried.link.lost(problem, now)
        else:
            carried.link.failed(problem, now)
        self._hang_up(carried)
        self._log_problem(carried, now)
        return commands

    def _blame(self, carried: _Carried, error: Exception, now: float) -> list[Command]:
        text = f"the connection to master {carried.link.node_id} failed"
        self._world.append(Log(ERROR, text, 0, error, "cluster"))
        return self._fail(carried, INTERNAL_ERROR, now)

    def _hang_up(self, carried: _Carried) -> None:
        dial = carried.dial
        if dial is not None:
            carried.dial = None
            carried.dial_until = math.inf
            carried.out = Outbound(carried.index, _UNUSED, carried.link.host, self._marks)
            self._world.append(HangUp(dial))

    def _log_problem(self, carried: _Carried, now: float) -> None:
        link = carried.link
        due = link.next_deadline()
        if link.state == LinkState.WAITING and due is not None:
            wait_s = max(due - now, 0.0)
            self._log(WARNING, link, f"{link.problem}; next try in {wait_s:.1f} seconds")

    def _log(self, level: int, link: MasterLink, text: str) -> None:
        self._world.append(Log(level, f"master {link.node_id}: {text}", 0, None, "cluster"))
