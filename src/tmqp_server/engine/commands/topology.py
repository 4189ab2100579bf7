"""The commands that create, change, empty and remove channels and queues."""

from __future__ import annotations

from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.options import NOWHERE, ChannelChanges, QueueChanges

__all__ = [
    "ClearMessages",
    "CreateChannel",
    "CreateQueue",
    "RemoveChannel",
    "RemoveChannels",
    "RemoveQueue",
    "UpdateChannel",
    "UpdateQueue",
    "targets_of",
]


class CreateChannel(SessionCommand):
    """Create a channel (F50).  481 when it exists, 400 for a bad name or option, 482."""

    __slots__ = ("request", "channel", "changes")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        changes: ChannelChanges | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.changes = changes


class UpdateChannel(SessionCommand):
    """Change options of a channel (F20).  404, 400, 406, 482, 503.

    Queues, consumers and messages that are there stay; what ``changes.queue`` says is for queues
    created from now on.
    """

    __slots__ = ("request", "channel", "changes")

    def __init__(
        self, session: int, request: object, channel: str, changes: ChannelChanges
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.changes = changes


class RemoveChannel(SessionCommand):
    """Remove a channel with its queues; consumers are simply no longer joined (F51).  404."""

    __slots__ = ("request", "channel")

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel


class RemoveChannels(SessionCommand):
    """Remove several channels with their queues, those that are there; 404 if none is.

    Who may not remove one of them removes none.  Answered when all of them have gone.
    """

    __slots__ = ("request", "channels")

    def __init__(self, session: int, request: object, channels: list[str]) -> None:
        super().__init__(session)
        self.request = request
        self.channels = channels


class CreateQueue(SessionCommand):
    """Create a queue (F54), and its channel when that is missing.

    ``changes`` is what the request asks for beyond the channel's options; ``channel_changes``
    applies only to a channel created now.  ``source`` is a queue, channel and id, that is to feed
    this one: without it nothing is created, and who may not add the feed may not create the queue
    (the feed itself is for AddFeed).  481 when the queue exists, 406 for a queue id the channel
    does not allow and for a delivery handler nobody registered, 400, 404 also without the source,
    482.
    """

    __slots__ = ("request", "channel", "queue_id", "changes", "channel_changes", "source")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        changes: QueueChanges | None = None,
        channel_changes: ChannelChanges | None = None,
        source: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.changes = changes
        self.channel_changes = channel_changes
        self.source = source


class UpdateQueue(SessionCommand):
    """Change options of a queue (F56).  404, 400, 406, 482.

    A changed status takes effect on what is stored (F92), a changed acknowledge timeout on what
    is in flight.
    """

    __slots__ = ("request", "channel", "queue_id", "changes")

    def __init__(
        self, session: int, request: object, channel: str, queue_id: int, changes: QueueChanges
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.changes = changes


class RemoveQueue(SessionCommand):
    """Remove a queue and its messages (F57, F93).  404."""

    __slots__ = ("request", "channel", "queue_id")

    def __init__(self, session: int, request: object, channel: str, queue_id: int) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id


class ClearMessages(SessionCommand):
    """Remove waiting messages of either priority, or of both, or of none (F58), deferred ones too;
    with ``in_flight`` what consumers have as well, whose answers then find nothing.  404."""

    __slots__ = ("request", "channel", "queue_id", "high_priority", "regular", "in_flight")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        high_priority: bool,
        regular: bool,
        in_flight: bool = False,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.high_priority = high_priority
        self.regular = regular
        self.in_flight = in_flight


def targets_of(command: Command) -> list[tuple[str, int]]:
    """The queues of dead letters that a command names: the server will write into them."""
    queues: list[QueueChanges | None] = []
    if isinstance(command, (CreateChannel, UpdateChannel)):
        if command.changes is not None:
            queues.append(command.changes.queue)
    elif isinstance(command, UpdateQueue):
        queues.append(command.changes)
    elif isinstance(command, CreateQueue):
        queues.append(command.changes)
        if command.channel_changes is not None:
            queues.append(command.channel_changes.queue)
    found: list[tuple[str, int]] = []
    for changes in queues:
        target = None if changes is None else changes.dead_letter
        if target is not None and target != NOWHERE:
            found.append(target)
    return found
