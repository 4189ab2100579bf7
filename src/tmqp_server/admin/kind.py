"""The protocol of the admin door.

Every start of a server loads all protocols; so the door itself, which needs many modules, is loaded
only when one is opened (``door.py``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, final

from tmqp_server.admin.options import ADMIN, AdminOptions
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.port import Door
from tmqp_server.doors.tables import record_of_options

if TYPE_CHECKING:
    from tmqp_server.admin.api.table import Api

__all__ = ["AdminKind"]

#: The door for ActiveMQ's clients, and the port where its users expect a console.
_ACTIVEMQ: Final = "openwire"
_ACTIVEMQ_PORT: Final = 8161


@final
class AdminKind(DoorKind):
    """The protocol of the admin door.

    :param world: the server that it administers.
    """

    name = ADMIN
    number = 0
    default_port = 2680
    has_names = False

    def ports(self, beside: Collection[str]) -> tuple[int, ...]:
        """Its own port, and the port of ActiveMQ's web console, for programs that expect it."""
        return (self.default_port, _ACTIVEMQ_PORT) if _ACTIVEMQ in beside else (self.default_port,)

    def __init__(self, world: AdminWorld) -> None:
        self._world = world
        #: The ``Api`` of the door that was opened last.
        self.api: Api

    def open(self, context: DoorContext) -> Door:
        """Open an admin door."""
        from tmqp_server.admin.door import open_door  # noqa: PLC0415 - an extra, and much

        options = record_of_options(AdminOptions(), context.options)
        door, self.api = open_door(self._world, context, options)
        return door
