"""The commands about feeds: queues whose messages are copied into other queues."""

from __future__ import annotations

from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.commands.looking import ListCommand
from tmqp_server.engine.model.message import SubscriptionFilter

__all__ = ["AddFeed", "ListFeeds", "RemoveFeed", "RestoreFeed"]


class AddFeed(SessionCommand):
    """Copy the messages of a queue, the source, into another, the target, from now on.

    ``filter`` selects the messages, None all; ``language`` and ``text`` are its written form.  If
    only the text is given, the filter is made from it; 400 if the text is invalid.  404 if a queue
    is missing, 481 if the feed exists, 406 if messages could return to a queue that they have left,
    or if the source has group keys, 482, 503.
    """

    __slots__ = (
        "request",
        "channel",
        "queue_id",
        "target",
        "target_queue",
        "filter",
        "language",
        "text",
    )

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        target: str,
        target_queue: int,
        filter: SubscriptionFilter | None = None,
        language: str = "",
        text: str = "",
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.target = target
        self.target_queue = target_queue
        self.filter = filter
        self.language = language
        self.text = text


class RemoveFeed(SessionCommand):
    """Remove a feed; copies that were made stay.  404."""

    __slots__ = ("request", "channel", "queue_id", "target", "target_queue")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        target: str,
        target_queue: int,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.target = target
        self.target_queue = target_queue


class ListFeeds(ListCommand):
    """Answered with a list of FeedSnapshot: those of one queue of a channel in the order of adding,
    or, with a queue id below 0, of all its queues.  404."""

    __slots__ = ("channel", "queue_id")

    def __init__(self, session: int, request: object, channel: str, queue_id: int = -1) -> None:
        super().__init__(session, request)
        self.channel = channel
        self.queue_id = queue_id


class RestoreFeed(Command):
    """Restore a feed; this command comes after those for its queues.

    :raises ValueError: by ``Broker.step``, if one of its queues is missing, or no door can read its
        filter.
    """

    __slots__ = ("channel", "queue_id", "target", "target_queue", "language", "text")

    def __init__(
        self,
        channel: str,
        queue_id: int,
        target: str,
        target_queue: int,
        language: str,
        text: str,
    ) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.target = target
        self.target_queue = target_queue
        self.language = language
        self.text = text
