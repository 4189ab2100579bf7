"""The options of destinations' queues, and the properties of a push besides its message.

A message to a topic is confirmed when its copies for the durable subscriptions are on disk.
"""

from __future__ import annotations

from typing import final

from tmqp.constants import STATUS_BROADCAST
from tmqp_server.engine.commands import PushExtras
from tmqp_server.engine.options import WITH_OWNER, ChannelChanges, QueueChanges

__all__ = ["JmsShapes"]


@final
class JmsShapes:
    """The options of a door's queues and topics, including temporary ones.

    :param queue: the options for creating a queue; *temporary* are those for a temporary one.
    :param send_wait_ms: how long a push waits for room in a queue, -1 for no limit.
    :param done_confirms: whether a message of a queue is confirmed as soon as its consumer has
        acknowledged it, even if it is not on disk yet.

    Attributes: ``of_topic``, the options for creating a topic; ``of_temporary``, those for the
    channel of a temporary destination.
    """

    __slots__ = ("_extras", "_shapes", "of_temporary", "of_topic")

    def __init__(
        self,
        queue: QueueChanges,
        temporary: QueueChanges,
        send_wait_ms: int,
        *,
        done_confirms: bool = False,
    ) -> None:
        self.of_temporary = ChannelChanges(lifetime=WITH_OWNER, owner_only=True)
        topic = self.of_topic = QueueChanges(status=STATUS_BROADCAST, request_acknowledge=False)
        #: By whether it is a topic, and whether it is temporary.
        self._shapes = {
            (False, False): queue,
            (False, True): temporary,
            (True, False): topic,
            (True, True): topic,
        }
        #: What most pushes say.  A push makes no temporary destination: those have an owner.
        self._extras = {
            (is_topic, is_temporary): PushExtras(
                shape,
                channel_changes=self.of_temporary if is_temporary else None,
                wait_ms=0 if is_topic else send_wait_ms,
                awaits_copies=is_topic,
                done_confirms=done_confirms and not is_topic,
            )
            for (is_topic, is_temporary), shape in self._shapes.items()
        }

    def of(self, is_topic: bool, is_temporary: bool) -> QueueChanges:
        """The options for creating the queue of a destination."""
        return self._shapes[is_topic, is_temporary]

    def extras(
        self, is_topic: bool, is_temporary: bool, expires_in_ms: int, delay_ms: int
    ) -> PushExtras:
        """The extras of a push to a destination."""
        usual = self._extras[is_topic, is_temporary]
        if not expires_in_ms and not delay_ms:
            return usual
        return PushExtras(
            usual.changes,
            expires_in_ms,
            delay_ms,
            channel_changes=usual.channel_changes,
            wait_ms=usual.wait_ms,
            awaits_copies=usual.awaits_copies,
            done_confirms=usual.done_confirms,
        )
