"""Those who come in by doors without bytes and judge by themselves what happens to what they do."""

from __future__ import annotations

from typing import Final

from tmqp_sim.plan import Plan
from tmqp_sim.removers import REMOVER, Remover
from tmqp_sim.shifters import SHIFTER, Shifter
from tmqp_sim.stage import Stage

__all__ = ["INSIDERS", "insiders_of"]

#: Their names.
INSIDERS: Final = (REMOVER, SHIFTER)


def insiders_of(simulation: Stage, plan: Plan) -> list[Remover | Shifter]:
    """Those that a plan wants."""
    found: list[Remover | Shifter] = []
    if plan.removals:
        found.append(Remover(simulation, plan))
    if plan.shifts:
        found.append(Shifter(simulation, plan))
    return found
