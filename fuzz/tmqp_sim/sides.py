"""Those in a run who speak other protocols than TMQP, or watch: their clients and their doors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tmqp_client.config import ClientLimits
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import Door
from tmqp_server.engine.model.queues import Queue
from tmqp_sim.disk import Disk
from tmqp_sim.goms_side import GomsSide
from tmqp_sim.jms_side import OpenwireSide, StompSide
from tmqp_sim.nsq_guests import NsqGuest
from tmqp_sim.nsq_side import NsqSide
from tmqp_sim.operators import Operator
from tmqp_sim.plan import Plan
from tmqp_sim.scrapers import WatchingSide
from tmqp_sim.side import Side
from tmqp_sim.side_books import SideBooks
from tmqp_sim.smq_side import SmqSide
from tmqp_sim.stage import Stage
from tmqp_sim.throttr import ThrottrSide
from tmqp_sim.zmtp_side import ZmtpSide

__all__ = ["Sides"]


class _Run(Stage, Protocol):
    """One run, with its disk and its operator."""

    disk: Disk
    operator: Operator


class Sides:
    """The sides of a run that its plan has.

    :param limits: of clients that speak TMQP among them.
    """

    def __init__(self, simulation: _Run, plan: Plan, limits: ClientLimits) -> None:
        self._sides: list[Side] = []
        #: The clients of TMQP among them.
        self.guests: Sequence[NsqGuest] = ()
        if plan.nsq:
            nsq = NsqSide(simulation, plan, limits)
            self.guests = nsq.guests
            self._sides.append(nsq)
        if plan.throttr:
            self._sides.append(ThrottrSide(simulation, plan))
        if plan.scrapers:
            self._sides.append(WatchingSide(simulation, plan))
        if plan.zmtp:
            self._sides.append(ZmtpSide(simulation, plan))
        if plan.smq:
            self._sides.append(SmqSide(simulation, plan))
        if plan.goms:
            self._sides.append(GomsSide(simulation, plan))
        if plan.stomp:
            self._sides.append(StompSide(simulation, plan))
        if plan.openwire:
            self._sides.append(OpenwireSide(simulation, plan))

    def books(self) -> list[SideBooks]:
        """What is owed to them, for who watches the broker."""
        found = [side.watcher() for side in self._sides]
        return [books for books in found if books is not None]

    def doors(self, letters: Letters) -> list[tuple[str, Door]]:
        """The doors of a life that begins, each with how the hosts of its clients begin."""
        return [(side.host, side.door(letters)) for side in self._sides]

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""
        for side in self._sides:
            side.began()

    def is_of(self, queue: Queue) -> bool:
        """Whether the messages of a queue are theirs, and must be dealt with."""
        return any(side.is_of(queue) for side in self._sides)

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        left: dict[str, int] = {}
        for side in self._sides:
            left.update(side.owed())
        return left

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is missing.
        """
        for side in self._sides:
            side.check_end()
