"""What everybody in a run may know of it; the run itself is in ``simulation.py``."""

from __future__ import annotations

from typing import Protocol

from tmqp_server.engine.broker import Broker
from tmqp_sim.history import History, Place
from tmqp_sim.network import Network
from tmqp_sim.server import Server
from tmqp_sim.world import World

__all__ = ["Stage"]


class Stage(Protocol):
    """One run, as clients, operator and disk see it."""

    world: World
    network: Network
    server: Server
    history: History
    places: dict[tuple[str, int], Place]
    broker: Broker
    #: Faults are over.
    healed: bool
    #: Every step of the broker is judged.
    watched: bool
