"""The inboxes for all messages except queue messages: direct and custom messages, events by topic.

The machine keeps a bounded number of messages that arrive without a listener as unclaimed; the next
listener gets the direct and custom messages among them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from tmqp.constants import HeaderName
from tmqp.events import (
    CustomMessageReceived,
    DirectMessageReceived,
    EventNotificationReceived,
    MessageReceived,
)
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.letters import SubscriptionRequest
from tmqp_client.config import ClientLimits
from tmqp_client.errors import AlreadyListening

__all__ = ["CUSTOM_MESSAGES", "DIRECT_MESSAGES", "Board", "Topic", "event_topic", "topic_of"]

#: An event's name, the channel in lower case, the queue; channel empty and queue 0 for none.
Topic: TypeAlias = tuple[str, str, int]

#: The topics of direct and of custom messages; no event has an empty name.
DIRECT_MESSAGES: Final[Topic] = ("", "", 0)
CUSTOM_MESSAGES: Final[Topic] = ("", "", 1)


def event_topic(name: str, channel: str | None, queue_id: int | None) -> Topic:
    """Return the topic of an event.

    The case of the channel is ignored, because the server may spell it in another way (F46, F131).
    """
    return (name, (channel or "").lower(), queue_id or 0)


def topic_of(event: MessageReceived) -> Topic | None:
    """Return the topic of a message; None if it has none."""
    if isinstance(event, DirectMessageReceived):
        return DIRECT_MESSAGES
    if isinstance(event, CustomMessageReceived):
        return CUSTOM_MESSAGES
    if isinstance(event, EventNotificationReceived) and event.name:
        return event_topic(event.name, event.channel, event.queue_id)
    return None


class Board:
    """The inboxes by topic.

    Attributes to read: ``directs``, ``events`` and ``customs``, the numbers of messages put into an
    inbox; ``dropped``, the number that was left in inboxes when they were closed.
    """

    __slots__ = ("_inboxes", "_limits", "customs", "directs", "dropped", "events")

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._inboxes: dict[Topic, Inbox[MessageReceived]] = {}
        self.directs = 0
        self.events = 0
        self.customs = 0
        self.dropped = 0

    def open(self, topic: Topic) -> Inbox[MessageReceived]:
        """Open the inbox of a topic.

        :raises AlreadyListening: if the topic has one.
        """
        if topic in self._inboxes:
            kind = "custom" if topic == CUSTOM_MESSAGES else "direct"
            what = f"the event {topic[0]}" if topic[0] else f"{kind} messages"
            raise AlreadyListening(f"this client listens to {what} already")
        limits = self._limits
        inbox: Inbox[MessageReceived] = Inbox(
            limits.consumer_messages, limits.consumer_bytes, limits.overflow_factor
        )
        self._inboxes[topic] = inbox
        return inbox

    def close(self, topic: Topic) -> None:
        """Remove an inbox; its messages are dropped and counted."""
        inbox = self._inboxes.pop(topic, None)
        if inbox is not None:
            self.dropped += inbox.clear()

    def take(self, event: MessageReceived) -> Inbox[MessageReceived] | None:
        """Put a message into the inbox of its topic; return the inbox, or None if there is none."""
        topic = topic_of(event)
        inbox = None if topic is None else self._inboxes.get(topic)
        if topic is not None and inbox is not None:
            self.file(event, topic, inbox)
        return inbox

    def file(self, event: MessageReceived, topic: Topic, inbox: Inbox[MessageReceived]) -> None:
        """Put a message about a topic into its inbox, and count it."""
        if topic == DIRECT_MESSAGES:
            self.directs += 1
        elif topic == CUSTOM_MESSAGES:
            self.customs += 1
        else:
            self.events += 1
        inbox.put(event, len(event.frame.raw))

    def of_request(self, request: SubscriptionRequest) -> list[Inbox[MessageReceived]]:
        """The inbox a subscription fills, if it is open."""
        headers = dict(request.headers)
        queue_id = headers.get(HeaderName.QUEUE_ID.value)
        topic = event_topic(
            request.target,
            headers.get(HeaderName.CHANNEL_NAME.value),
            None if queue_id is None else int(queue_id),
        )
        inbox = self._inboxes.get(topic)
        return [] if inbox is None else [inbox]

    def crowded(self, awaited: bool) -> bool:
        """Whether an inbox is congested, or, while an answer is ``awaited``, overfull."""
        for inbox in self._inboxes.values():
            if inbox.congested and (not awaited or inbox.overfull):
                return True
        return False

    def inboxes(self) -> list[Inbox[MessageReceived]]:
        """Return all inboxes."""
        return list(self._inboxes.values())
