"""Durable subscriptions, which keep a topic's messages for a client while it is disconnected.

A durable subscription is a separate queue, ``durable://CLIENT/NAME``, into which a feed copies the
messages of the topic that the selector accepts.  Queue and feed are stored, so the subscription
survives a restart.  One consumer at a time joins the queue: its channel allows one.

The tag of the queue is a digest of the subscription's topic and selector
(:attr:`DurableSubscription.tag`).  A client that subscribes with another topic or selector begins a
new subscription: the queue is removed with its messages, and created again (JMS 1.1, 6.11.1).

A door looks up the queue (:func:`look`), and then carries out the commands that :func:`begin`
returns for the answer.  The broker answers them when their results are on disk.  The client's
subscription is confirmed when all of them are answered (:func:`waits_for`): messages that are sent
from then on are kept, even if the server crashes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, final

from tmqp.constants import RESULT_OK
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.selector import SelectorFilter
from tmqp_server.engine.commands import (
    AddFeed,
    Command,
    CreateQueue,
    DescribeQueue,
    RemoveChannel,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_server.engine.options import ChannelChanges, QueueChanges

__all__ = [
    "ONE_CONSUMER",
    "QUEUE",
    "DurableSubscription",
    "begin",
    "durable_channel",
    "look",
    "waits_for",
]

#: The queue of every channel.
QUEUE: Final = 0
#: A durable subscription has one consumer at a time.
ONE_CONSUMER: Final = ChannelChanges(client_limit=1)
_TAG_DIGITS: Final = 32


def durable_channel(client_id: str, name: str, names: DoorNames) -> str:
    """The channel of a durable subscription, which is the same at every door."""
    return names.exact_channel(f"durable://{client_id}/{name}".encode("utf-8", "replace"))


@final
class DurableSubscription:
    """A durable subscription as a client asks for it: the ``channel`` that keeps its messages, its
    ``topic``, and its ``selector``, None for all messages."""

    __slots__ = ("channel", "selector", "topic")

    def __init__(self, channel: str, topic: str, selector: SelectorFilter | None = None) -> None:
        self.channel = channel
        self.topic = topic
        self.selector = selector

    @property
    def language(self) -> str:
        """The language of the selector; empty without one."""
        return "" if self.selector is None else self.selector.language

    @property
    def text(self) -> str:
        """The text of the selector; empty without one."""
        return "" if self.selector is None else self.selector.text

    @property
    def tag(self) -> str:
        """The tag that its queue must have; with another tag, the queue is for another topic or
        selector."""
        said = f"{self.topic}\n{self.language}\n{self.text}"
        return f"durable-{sha256(said.encode('utf-8', 'replace')).hexdigest()[:_TAG_DIGITS]}"


def look(session: int, request: object, subscription: DurableSubscription) -> Command:
    """The command that finds out whether a subscription exists; pass its answer to
    :func:`begin`."""
    return DescribeQueue(session, request, subscription.channel, QUEUE)


def begin(
    session: int,
    request: object,
    subscription: DurableSubscription,
    found: Reply,
    of_topic: QueueChanges,
    of_queue: QueueChanges,
    about_topic: object = None,
) -> list[Command]:
    """The commands that create what is missing of a subscription; none if it exists as requested.

    The answers carry *request*: 0, or 481 for a queue that already exists.

    :param found: the answer to :func:`look`.
    :param of_topic: the options for creating the topic.
    :param of_queue: the options for creating the subscription's queue; this sets its tag.
    :param about_topic: the token for creating the topic, instead of *request*.  The client may not
        have the right to create a topic that exists; if the topic does not exist, adding the feed
        fails.
    """
    commands: list[Command] = []
    if found.code == RESULT_OK:
        snapshot = found.body
        assert isinstance(snapshot, QueueSnapshot), "that is how a queue is described"
        if snapshot.options.tag == subscription.tag:
            return commands
        commands.append(RemoveChannel(session, request, subscription.channel))
    of_queue.tag = subscription.tag
    topic, channel = subscription.topic, subscription.channel
    commands += [
        CreateQueue(session, about_topic or request, topic, QUEUE, of_topic),
        CreateQueue(session, request, channel, QUEUE, of_queue, ONE_CONSUMER, (topic, QUEUE)),
        AddFeed(
            session,
            request,
            topic,
            QUEUE,
            channel,
            QUEUE,
            subscription.selector,
            subscription.language,
            subscription.text,
        ),
    ]
    return commands


def waits_for(commands: list[Command], request: object) -> int:
    """How many answers will carry *request*."""
    return sum(
        [
            isinstance(each, (AddFeed, CreateQueue, RemoveChannel)) and each.request is request
            for each in commands
        ]
    )
