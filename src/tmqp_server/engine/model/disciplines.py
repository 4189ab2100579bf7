"""The meaning of each queue status: one ``Discipline`` per status, in a table by its number.

A discipline has facts that the workflow reads: whether messages are refused, kept, sent
automatically, or given to one consumer each.  The workflow does not know a status by name, so a row
shows everything that a status does.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    STATUS_BROADCAST,
    STATUS_CACHE,
    STATUS_PAUSED,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
    STATUS_STOPPED,
)

__all__ = ["DISCIPLINES", "Discipline"]


class Discipline:
    """The behaviour of one status (specification, "Queue Statuses")."""

    __slots__ = ("status", "refuses", "stores", "sends", "exclusive", "replaces", "pulled")

    def __init__(
        self,
        status: int,
        refuses: bool,
        stores: bool,
        sends: bool,
        exclusive: bool,
        replaces: bool,
        pulled: bool,
    ) -> None:
        self.status = status
        #: Pushes are answered with 401, and what was stored is cleared on entering (F75, F92).
        self.refuses = refuses
        #: A message without a consumer is kept (F86).
        self.stores = stores
        #: Messages go out by themselves, without being asked for.
        self.sends = sends
        #: Each message goes to one consumer, the next in turn (F90).
        self.exclusive = exclusive
        #: A new message takes the place of the one that waits (contradiction 28).
        self.replaces = replaces
        #: Messages go to those who ask for them (F104, F112).
        self.pulled = pulled


#: Status number to discipline.
DISCIPLINES: Final[dict[int, Discipline]] = {
    #           refuses, stores, sends, exclusive, replaces, pulled
    STATUS_BROADCAST: Discipline(STATUS_BROADCAST, False, False, True, False, False, False),  # F86
    STATUS_PUSH: Discipline(STATUS_PUSH, False, True, True, False, False, False),  # F87
    STATUS_ROUND_ROBIN: Discipline(
        STATUS_ROUND_ROBIN, False, True, True, True, False, False
    ),  # F90
    STATUS_PULL: Discipline(STATUS_PULL, False, True, False, True, False, True),  # F91, F104
    STATUS_CACHE: Discipline(STATUS_CACHE, False, True, False, True, True, True),  # F91, F112
    STATUS_PAUSED: Discipline(STATUS_PAUSED, False, True, False, False, False, False),  # F91
    STATUS_STOPPED: Discipline(STATUS_STOPPED, True, False, False, False, False, False),  # F75, F92
}
