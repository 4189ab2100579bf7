"""Messages that other nodes have, too: finding them, and withdrawing them.

Theory of operation.  If decisions are shared (F63), a message that its queue keeps is *shared*: it
is marked, and found by its id in ``Queue.shared`` until it is settled.  When the queue settles it,
the other nodes are notified; when another node settles it, it is withdrawn here.  A withdrawn
message stays in its list as a tombstone, like an expired one, so withdrawing costs the same at any
position.

Producers choose the ids, which may repeat: of several messages with one id, only the first is
shared.

Each node feeds its own queues.  So a message that feeds have here says nothing about other nodes,
and a decision of another node is applied only after the feeds have the message.  For a channel with
an exact name, decisions use this name (``Channel.shared_name``).
"""

from __future__ import annotations

from tmqp_server.engine.effects import Effect, TellNodes
from tmqp_server.engine.model.channels import ChannelTable
from tmqp_server.engine.model.message import (
    MARK_FED,
    MARK_NEGATIVE,
    MARK_SHARED,
    Message,
)
from tmqp_server.engine.model.queues import Queue

__all__ = ["forget", "must_be_fed", "reindex", "share", "tell"]


def share(queue: Queue, message: Message) -> None:
    """Mark *message* as one that other nodes have, too; a queue that stores nothing shares nothing,
    nor can a message without an id be shared."""
    message_id = message.message_id
    if queue.discipline.stores and message_id and message_id not in queue.shared:
        queue.shared[message_id] = message
        message.marks |= MARK_SHARED


def forget(queue: Queue, message: Message) -> None:
    """Remove a settled message from the table."""
    if queue.shared.get(message.message_id) is message:
        del queue.shared[message.message_id]


def reindex(queue: Queue, in_hand: Message | None = None) -> None:
    """Rebuild the table without cleared messages that are not disposed of yet, by examining those
    that are left.

    *in_hand* is a message of the queue that is in no list at this moment.
    """
    if not queue.shared:
        return
    left: dict[str, Message] = {}
    if in_hand is not None and in_hand.marks & MARK_SHARED:
        left[in_hand.message_id] = in_hand
    for messages in (queue.high.messages(), queue.regular.messages()):
        for message in messages:
            if message.marks & MARK_SHARED:
                left[message.message_id] = message
    for message in queue.deferred.messages():
        if message.marks & MARK_SHARED:
            left[message.message_id] = message
    for message in queue.all_flights().values():
        if message.marks & MARK_SHARED:
            left[message.message_id] = message
    queue.shared = left


def tell(out: list[Effect], channels: ChannelTable, queue: Queue, message: Message) -> None:
    """Notify the other nodes that this queue has settled a shared message, unless feeds have it."""
    if message.marks & MARK_FED:
        return
    name = channels.shared_name(queue.channel_name)
    positive = not message.marks & MARK_NEGATIVE
    out.append(TellNodes(name, queue.queue_id, message.message_id, positive))


def must_be_fed(queue: Queue, message: Message) -> bool:
    """Whether the feeds of the queue must still get a message, whatever other nodes did with it."""
    return queue.feeds is not None and not queue.exclusive and not message.marks & MARK_FED
