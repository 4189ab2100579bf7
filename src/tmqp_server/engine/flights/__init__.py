"""The accounts of messages: messages in memory, deliveries in flight, outcomes.

Only ``Flights`` changes these accounts.
"""

from __future__ import annotations

from tmqp_server.engine.flights.deferred import LOOK_AHEAD_S
from tmqp_server.engine.flights.flights import Flights, enter, leave
from tmqp_server.engine.flights.runs import waits_plainly

__all__ = ["LOOK_AHEAD_S", "Flights", "enter", "leave", "waits_plainly"]
