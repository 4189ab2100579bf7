"""Messages to topics that durable subscriptions are to have on disk before their sender is told.

A topic keeps nothing, so its confirm waits for no disk.  A batch into it is answered when the
copies that its feeds have made are safe; servers of a cluster do without batches.
"""

from __future__ import annotations

from typing import final

from tmqp.constants import RESULT_NOT_IMPLEMENTED
from tmqp_server.engine.commands import Batch, Push

__all__ = ["SentToTopic", "TopicCopies"]


@final
class SentToTopic:
    """What the answer to such a batch is about: ``asked`` is what the door waits with, ``push`` the
    message."""

    __slots__ = ("asked", "push")

    def __init__(self, asked: object, push: Push) -> None:
        self.asked = asked
        self.push = push


@final
class TopicCopies:
    """How the connections of a door send to topics.

    :param asked: whether anything is kept on disk, so that there is something to wait for.
    """

    __slots__ = ("asked",)

    def __init__(self, *, asked: bool) -> None:
        self.asked = asked

    def are_asked_for(self, *, is_topic: bool, is_temporary: bool) -> bool:
        """Whether a message to such a destination is sent by :meth:`batch_of`."""
        return self.asked and is_topic and not is_temporary

    def batch_of(self, asked: object, push: Push) -> Batch:
        """What sends a message so that the answer waits for its copies."""
        return Batch(push.session, SentToTopic(asked, push), [push])

    def push_instead(self, sent: SentToTopic, code: int) -> Push | None:
        """The push to be carried out where there are no batches, from now on of each message; None
        where there are."""
        if code != RESULT_NOT_IMPLEMENTED:
            return None
        self.asked = False
        sent.push.wants_confirm = True
        return sent.push
