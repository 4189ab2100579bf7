"""tmqp_sim: the broker, its door and its clients in a world of virtual time, seeded chance and
faults; see ``docs/guides/simulation.md``.
"""

from __future__ import annotations

from tmqp_sim.plan import Plan, draw_plan
from tmqp_sim.results import Result
from tmqp_sim.simulation import Simulation, run, run_handler

__all__ = ["Plan", "Result", "Simulation", "draw_plan", "run", "run_handler"]
