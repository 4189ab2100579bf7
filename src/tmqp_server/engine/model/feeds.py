"""``Feed``: a consumer that is a queue, which takes and acknowledges a message immediately.

A feed copies the messages of one queue, its source, into another, its target.  The copies are
separate messages, with the same id and wire form.  ``delivery/feeding.py`` makes them.
"""

from __future__ import annotations

from tmqp_server.engine.books import feed_bytes
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import QueueFacts
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.timers import Sleeper
from tmqp_server.engine.records import Record

__all__ = ["Feed", "FeedTimer", "KeptFeed"]


class FeedTimer(Sleeper):
    """Wakes the feeder to try queues again."""

    __slots__ = ()


class KeptFeed(Record):
    """What the storage saves of a feed, with its source: the target, and the text of its filter."""

    __slots__ = ("target", "target_queue", "language", "text")

    def __init__(self, target: str, target_queue: int, language: str, text: str) -> None:
        self.target = target
        self.target_queue = target_queue
        self.language = language
        self.text = text


class Feed:
    """One feed, from ``source`` to ``target``.

    ``filter`` selects the messages, None all; ``language`` and ``text`` are its written form.
    """

    __slots__ = (
        "source",
        "target",
        "filter",
        "language",
        "text",
        "client",
        "copied",
        "passed",
        "skipped",
        "memory",
        "asked",
        "asked_at",
        "room",
    )

    def __init__(
        self,
        source: QueueFacts,
        target: QueueFacts,
        filter: SubscriptionFilter | None,
        language: str,
        text: str,
        now: float,
    ) -> None:
        self.source = source
        self.target = target
        self.filter = filter
        self.language = language
        self.text = text
        #: The consumer that delivery handlers of the source see.
        name = f"{target.channel_name};{target.queue_id}"
        self.client = Client(0, name, None, None, "", None, True, now)
        #: Copies made.
        self.copied = 0
        #: Messages that the filter did not accept.
        self.passed = 0
        #: Messages that the filter accepted, but the target could not take.
        self.skipped = 0
        #: What it is charged in the broker's books.
        self.memory = feed_bytes(target.channel_name, text)
        #: The number of the check whose result ``room`` is, and the target's sequence then.
        self.asked = 0
        self.asked_at = 0
        self.room = 0

    def kept(self) -> KeptFeed:
        """What the storage saves of it."""
        target = self.target
        return KeptFeed(target.channel_name, target.queue_id, self.language, self.text)
