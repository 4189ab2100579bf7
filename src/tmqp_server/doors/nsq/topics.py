"""Topics and channels of NSQ as channels, queues and feeds (N66 to N73).

The topic ``T`` is the channel ``T`` with the queue 0 in push status.  Its channel ``C`` is the
channel ``T:C`` with the queue 0 in round robin (``NsqNames``).  A feed copies the messages of the
topic into the channel.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.doors.nsq.options import NsqOptions
from tmqp_server.doors.nsq_world import NsqNames
from tmqp_server.engine.commands import AddFeed, Command, CreateQueue, PushExtras
from tmqp_server.engine.options import WITH_CONSUMERS, ChannelChanges, QueueChanges
from tmqp_wires.nsq.names import is_ephemeral

__all__ = ["HANDLER", "QUEUE", "Shapes"]

#: The queue of every topic and channel.
QUEUE: Final = 0
#: Sends a message again until a consumer finishes it, whoever published it.
HANDLER: Final = "retry-timeouts"
_NO_LIMIT: Final = -1
#: So many topics are remembered.
_MAX_TOPICS: Final = 1_000


@final
class _Topic:
    """The parameters with which CreateQueue, or a push, creates a topic."""

    __slots__ = ("changes", "channel", "channel_changes", "extras")

    def __init__(
        self, channel: str, changes: QueueChanges, channel_changes: ChannelChanges | None
    ) -> None:
        self.channel = channel
        self.changes = changes
        self.channel_changes = channel_changes
        self.extras = PushExtras(changes, channel_changes=channel_changes)


class Shapes:
    """Creates topics and channels.

    :param options: those of the door.
    :param names: their channels in the broker.
    :param durable: whether messages are stored on disk; the server must have a storage then.
    """

    def __init__(self, options: NsqOptions, names: NsqNames, *, durable: bool) -> None:
        self._options = options
        self.names = names
        self.mem_queue_size = options.mem_queue_size
        self._durable = durable
        #: The parameters of topics, which every publication needs.
        self._topics: dict[bytes, _Topic] = {}

    def create_topic(self, session: int, topic: bytes, request: object = None) -> CreateQueue:
        """The command to create the topic if it does not exist."""
        known = self._topic(topic)
        return CreateQueue(
            session, request, known.channel, QUEUE, known.changes, known.channel_changes
        )

    def channel_of(self, topic: bytes) -> str:
        """The broker's channel for a topic."""
        return self._topic(topic).channel

    def extras(self, topic: bytes, delay_ms: int = 0) -> PushExtras:
        """The extras of a push, which creates the topic: its client may be allowed to push but not
        to create."""
        known = self._topic(topic)
        if not delay_ms:
            return known.extras
        return PushExtras(known.changes, 0, delay_ms, channel_changes=known.channel_changes)

    def _topic(self, topic: bytes) -> _Topic:
        known = self._topics.get(topic)
        if known is None:
            if len(self._topics) >= _MAX_TOPICS:
                self._topics.clear()
            known = self._topics[topic] = _Topic(
                self.names.topic(topic),
                self._changes(topic, STATUS_PUSH),
                ChannelChanges(lifetime=WITH_CONSUMERS) if is_ephemeral(topic) else None,
            )
        return known

    def create_channel(
        self, session: int, topic: bytes, channel: bytes, request: object = None
    ) -> list[Command]:
        """The commands to create the channel if it does not exist, and to feed it.  The topic must
        exist; else both answers are 404, and no channel is created.  The answers, for the queue and
        then for the feed, carry *request*: 0 and 481 mean that it exists."""
        options = self._options
        names = self.names
        name = names.channel(topic, channel)
        source = names.topic(topic)
        changes = self._changes(channel, STATUS_ROUND_ROBIN)
        if is_ephemeral(topic):
            changes.durable, changes.ephemeral = False, True
        changes.delivery_handler = HANDLER
        changes.acknowledge_timeout_ms = options.msg_timeout_ms
        changes.put_back_limit = _NO_LIMIT
        if options.max_attempts:
            changes.put_back_limit = options.max_attempts - 1
            if options.dead_letter:
                changes.dead_letter = (names.topic(options.dead_letter.encode()), QUEUE)
        of_channel = ChannelChanges()
        if options.max_channel_consumers:
            of_channel.client_limit = options.max_channel_consumers
        if is_ephemeral(channel):
            of_channel.lifetime = WITH_CONSUMERS
        return [
            CreateQueue(session, request, name, QUEUE, changes, of_channel, (source, QUEUE)),
            AddFeed(session, request, source, QUEUE, name, QUEUE),
        ]

    def _changes(self, name: bytes, status: int) -> QueueChanges:
        """The options of the queue of a topic or channel with this name."""
        ephemeral = is_ephemeral(name)
        options = self._options
        return QueueChanges(
            status=status,
            request_acknowledge=True,
            delivery_handler=HANDLER,
            durable=self._durable and not ephemeral,
            ephemeral=ephemeral,
            memory_limit=options.mem_queue_size,
        )
