"""Those in a run who speak other protocols than TMQP and HTTP: their clients and their doors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tmqp_client.config import ClientLimits
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import Door
from tmqp_server.engine.model.queues import Queue
from tmqp_sim.disk import Disk
from tmqp_sim.host import NSQ, THROTTR, ZMTP
from tmqp_sim.nsq_guests import NsqGuest
from tmqp_sim.nsq_side import NsqSide
from tmqp_sim.operators import Operator
from tmqp_sim.plan import Plan
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
        self.nsq = NsqSide(simulation, plan, limits) if plan.nsq else None
        self.throttr = ThrottrSide(simulation, plan) if plan.throttr else None
        self.zmtp = ZmtpSide(simulation, plan) if plan.zmtp else None

    @property
    def guests(self) -> Sequence[NsqGuest]:
        """The clients of TMQP among them."""
        return () if self.nsq is None else self.nsq.guests

    def doors(self, letters: Letters) -> list[tuple[str, Door]]:
        """The doors of a life that begins, each with how the hosts of its clients begin."""
        found: list[tuple[str, Door]] = []
        if self.nsq is not None:
            found.append((NSQ, self.nsq.door(letters)))
        if self.throttr is not None:
            found.append((THROTTR, self.throttr.door(letters)))
        if self.zmtp is not None:
            found.append((ZMTP, self.zmtp.door(letters)))
        return found

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""
        if self.nsq is not None:
            self.nsq.began()
        if self.zmtp is not None:
            self.zmtp.began()

    def is_of(self, queue: Queue) -> bool:
        """Whether the messages of a queue are theirs, and must be dealt with."""
        if self.nsq is not None and self.nsq.is_of(queue):
            return True
        return self.zmtp is not None and self.zmtp.is_of(queue)

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        left: dict[str, int] = {}
        if self.nsq is not None:
            left.update(self.nsq.owed())
        if self.throttr is not None:
            left.update(self.throttr.owed())
        if self.zmtp is not None:
            left.update(self.zmtp.owed())
        return left

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is missing.
        """
        if self.nsq is not None:
            self.nsq.check_end()
        if self.zmtp is not None:
            self.zmtp.check_end()
