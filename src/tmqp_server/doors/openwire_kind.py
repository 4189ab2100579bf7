"""OpenWire among the protocols that a server can serve."""

from __future__ import annotations

from typing import final

from tmqp_server.doors.bodies import Bodies, LateBodies
from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.port import Door
from tmqp_server.doors.tables import limits_from, record_of_options

__all__ = ["OpenwireKind"]


@final
class OpenwireKind(DoorKind):
    """OpenWire."""

    name = "openwire"
    number = 3
    default_port = 61_616

    def bodies(self) -> Bodies:
        """A reader that needs no door; its code is loaded when the first message needs it."""
        return LateBodies(self.name, self.number, _bodies)

    def open(self, context: DoorContext) -> Door:
        """Open a door; without a data directory, its queues are in memory only."""
        from tmqp_server.doors.openwire.door import OpenwireDoor  # noqa: PLC0415 - few have it
        from tmqp_server.doors.openwire.options import (  # noqa: PLC0415 - as above
            OpenwireLimits,
            OpenwireOptions,
        )

        options = record_of_options(OpenwireOptions(), context.options)
        return OpenwireDoor(
            context.new_id,
            limits_from(OpenwireLimits(), context.limits),
            options,
            context.letters,
            context.names,
            context.wall_clock_offset_s,
            durable=context.has_storage and options.durable,
            done_confirms=options.done_confirms and not context.in_group,
        )


def _bodies() -> Bodies:
    from tmqp_server.doors.openwire.message import OpenwireBodies  # noqa: PLC0415 - as above

    return OpenwireBodies()
