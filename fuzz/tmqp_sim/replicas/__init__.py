"""Groups of replicated servers over a simulated log: the product's decisions, in virtual time.

``python -m tmqp_sim.replicas`` runs 500 of them; see ``docs/guides/simulation.md``.
"""

from __future__ import annotations

from tmqp_sim.replicas.group import Group, run_group
from tmqp_sim.replicas.log_server import LogServer

__all__ = ["Group", "LogServer", "run_group"]
