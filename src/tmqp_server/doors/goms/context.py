"""What all connections of a door of goMS share."""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import STATUS_BROADCAST
from tmqp_server.doors.answers import CountedIds
from tmqp_server.doors.goms.options import GomsLimits, GomsOptions
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.options import QueueChanges
from tmqp_wires.goms import Dialect

__all__ = ["GomsContext"]

_ECHOES: Final = {"yes": True, "no": False}


@final
class GomsContext:
    """The context of a session; the parameters are those of ``GomsDoor``.

    ``channels`` has the channel of each configured topic.
    """

    __slots__ = ("channels", "datagrams", "ids", "limits", "names", "new_id", "options")

    def __init__(
        self,
        new_id: IdSource,
        limits: GomsLimits,
        options: GomsOptions,
        names: DoorNames,
        *,
        datagrams: bool,
    ) -> None:
        self.new_id = new_id
        self.limits = limits
        self.options = options
        self.names = names
        self.datagrams = datagrams
        self.ids = CountedIds(new_id())
        self.channels = {topic: names.channel_of(topic.encode()) for topic in options.topics}

    def changes(self) -> QueueChanges:
        """The options of new queues: broadcast, without acknowledgements."""
        return QueueChanges(status=STATUS_BROADCAST, request_acknowledge=False)

    def topic_of(self, channel: str) -> str:
        """The topic of a channel."""
        return self.names.foreign_name(channel).decode("utf-8", "replace")

    def echoes(self, dialect: Dialect) -> bool:
        """Whether clients of this dialect get their own messages back."""
        return _ECHOES.get(self.options.echo, dialect is Dialect.TYPE)
