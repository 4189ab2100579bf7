"""Clients of TMQP that keep books of what they do: all of it must be done in the end."""

from __future__ import annotations

from typing import Final, TypeAlias

from tmqp_client.config import ClientLimits
from tmqp_sim.copies import Copies
from tmqp_sim.epochs import EpochWriter
from tmqp_sim.feeders import Feeder
from tmqp_sim.keepers import CellKeeper
from tmqp_sim.movers import Mover
from tmqp_sim.plan import Plan
from tmqp_sim.stage import Stage

__all__ = ["Worker", "Workers"]

Worker: TypeAlias = EpochWriter | Mover | Feeder | CellKeeper
#: When they connect, in seconds.
_WRITER_AT: Final = 0.005
_MOVER_AT: Final = 0.007
_FEEDER_AT: Final = 0.009
_KEEPERS_AT: Final = (0.011, 0.013)


class Workers:
    """Those that a plan wants; ``all`` of them, and ``copies``, what the feeder's feeds owe."""

    def __init__(self, simulation: Stage, plan: Plan, limits: ClientLimits) -> None:
        self.all: list[Worker] = []
        self.writers: list[EpochWriter] = []
        self.movers: list[Mover] = []
        self.copies: Copies | None = None
        world = simulation.world
        if plan.epochs:
            writer = EpochWriter(simulation, "writer", limits, plan.epochs)
            self.writers.append(writer)
            world.at(_WRITER_AT, writer.connect)
        if plan.moves:
            mover = Mover(simulation, "mover", limits, plan.moves)
            self.movers.append(mover)
            world.at(_MOVER_AT, mover.connect)
        self.all += [*self.writers, *self.movers]
        if plan.feeds:
            self.copies = Copies(world, plan.fed_kind, plan.fed_filters)
            feeder = Feeder(simulation, "feeder", limits, self.copies, plan.feeds, plan.fed_room)
            feeder.looks = plan.fed_looks
            self.all.append(feeder)
            world.at(_FEEDER_AT, feeder.connect)
        for number, at in enumerate(_KEEPERS_AT if plan.cells else ()):
            keeper = CellKeeper(simulation, f"keeper-{number}", limits, plan.cells)
            self.all.append(keeper)
            world.at(at, keeper.connect)
