"""What all connections of a door of Simple MQ share."""

from __future__ import annotations

from typing import final

from tmqp.constants import PUT_BACK_NO, PUT_BACK_START, STATUS_ROUND_ROBIN
from tmqp_server.doors.answers import CountedIds
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.smq.options import SmqLimits, SmqOptions
from tmqp_server.engine.commands import PushExtras, Terms
from tmqp_server.engine.options import QueueChanges

__all__ = ["SmqContext"]


@final
class SmqContext:
    """The context of a session; the parameters are those of ``SmqDoor``.

    ``known`` are the names of the queues that were used through this door, by channel, in the order
    of their first use.
    """

    __slots__ = ("extras", "ids", "known", "limits", "names", "new_id", "options")

    def __init__(
        self, new_id: IdSource, limits: SmqLimits, options: SmqOptions, names: DoorNames
    ) -> None:
        self.new_id = new_id
        self.limits = limits
        self.options = options
        self.names = names
        self.known: dict[str, bytes] = {}
        self.ids = CountedIds(new_id())
        #: The extras of each push: the options of its queue, without a limit on redeliveries, and
        #: how long it waits for room.
        self.extras = PushExtras(
            QueueChanges(
                status=STATUS_ROUND_ROBIN,
                request_acknowledge=True,
                durable=options.durable,
                put_back_limit=-1,
            ),
            wait_ms=round(limits.max_wait_s * 1_000),
        )

    def changes(self) -> QueueChanges | None:
        """The options for creating queues."""
        return self.extras.changes

    def terms(self) -> Terms:
        """The terms of consumers: a fixed window, and no acknowledgement timeout."""
        returns = PUT_BACK_NO if self.options.lose_unfinished else PUT_BACK_START
        return Terms(self.limits.max_in_hand, -1, returns)

    def know(self, channel: str, queue: bytes) -> None:
        """Remember a queue that is used, up to the limit."""
        if channel not in self.known and len(self.known) < self.limits.max_queues:
            self.known[channel] = queue
