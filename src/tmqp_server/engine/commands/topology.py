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
    """Create a channel (F50).  481 if it exists, 400 for an invalid name or option, 482."""

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

    Existing queues, consumers and messages stay; ``changes.queue`` applies to queues created from
    now on.
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
    """Remove a channel with its queues; its consumers leave it (F51).  404."""

    __slots__ = ("request", "channel")

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel


class RemoveChannels(SessionCommand):
    """Remove several channels with their queues; missing ones are ignored, 404 if all are missing.

    If the client may not remove one of them, none is removed.  Answered when all of them are
    removed.
    """

    __slots__ = ("request", "channels")

    def __init__(self, session: int, request: object, channels: list[str]) -> None:
        super().__init__(session)
        self.request = request
        self.channels = channels


class CreateQueue(SessionCommand):
    """Create a queue (F54), and its channel if it is missing.

    ``changes`` are the options that the request sets, instead of the channel's; ``channel_changes``
    applies only to a channel created now.  ``source`` (channel and id) is a queue that is to feed
    this one: if it is missing, or if the client may not add the feed, nothing is created (AddFeed
    adds the feed itself).  481 if the queue exists, 406 for a queue id that the channel does not
    allow and for an unregistered delivery handler, 400, 404 also for a missing source, 482.
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

    A changed status affects stored messages (F92), a changed acknowledgement timeout those in
    flight.
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
    """Remove the waiting and deferred messages of one priority, of both, or of none (F58); with
    ``in_flight``, also those in flight, whose answers then find nothing.  404."""

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
    """The dead letter queues that a command names: the server will write into them."""
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
