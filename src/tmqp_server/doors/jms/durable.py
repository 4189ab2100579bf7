"""Durable subscriptions: a topic's messages are kept for a client that is disconnected.

A durable subscription is a separate queue, ``durable://CLIENT/NAME``, into which a feed copies the
messages of the topic that the selector accepts.  Queue and feed are stored, so the subscription
survives a restart.  One consumer at a time joins the queue: its channel allows one.

The tag of its queue has the topic and the selector of a subscription
(:attr:`DurableSubscription.tag`).  A client that subscribes with another topic or selector begins a
new subscription: the queue is removed with its messages, and created again (JMS 1.1, 6.11.1).

A door looks for the queue first (:func:`look`), and then carries out the commands that
:func:`begin` returns for the answer.  The broker answers when they are on disk, and the client's
subscription is confirmed when all of them are answered (:func:`waits_for`): messages that are sent
from then on are kept, whatever happens to the server.
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
    """The channel of a durable subscription; the same at every door."""
    return names.exact_channel(f"durable://{client_id}/{name}".encode("utf-8", "replace"))


@final
class DurableSubscription:
    """What a client says of its durable subscription: the ``channel`` that keeps its messages, the
    ``topic`` that it is for, and its selector, None for all messages."""

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
        """The selector as it was written down; empty without one."""
        return "" if self.selector is None else self.selector.text

    @property
    def tag(self) -> str:
        """What the tag of its queue must be, or it is for something else."""
        said = f"{self.topic}\n{self.language}\n{self.text}"
        return f"durable-{sha256(said.encode('utf-8', 'replace')).hexdigest()[:_TAG_DIGITS]}"


def look(session: int, request: object, subscription: DurableSubscription) -> Command:
    """Look whether a subscription is there; the answer is for :func:`begin`."""
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
    """Make what is missing of a subscription; nothing when it is there as it must be.

    Each command is answered to the *request*: 0, or 481 where a queue is there already.

    :param found: the answer to :func:`look`.
    :param of_topic: how the topic is made if it is not there.
    :param of_queue: how the subscription's queue is made; its tag is set.
    :param about_topic: what the answer about making the topic goes to instead of the request:
        whether the topic is there after all, although the client may not make it, shows when it is
        fed from.
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
    """How many answers to a request there will be."""
    return sum(
        [
            isinstance(each, (AddFeed, CreateQueue, RemoveChannel)) and each.request is request
            for each in commands
        ]
    )
