"""The books on messages: what is in memory, who has what in flight, what became of each.

``Flights`` changes these books, and no other module does.
"""

from __future__ import annotations

from tmqp_server.engine.flights.deferred import LOOK_AHEAD_S
from tmqp_server.engine.flights.flights import Flights, enter, leave
from tmqp_server.engine.flights.runs import waits_plainly

__all__ = ["LOOK_AHEAD_S", "Flights", "enter", "leave", "waits_plainly"]
