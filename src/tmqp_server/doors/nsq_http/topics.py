"""Topics and channels by HTTP: create, delete, empty, pause (N117 to N120)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from tmqp.constants import (
    RESULT_NOT_FOUND,
    RESULT_OK,
    STATUS_PAUSED,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
)
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.doors.http.routes import Route
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq_http.asking import AskingHandler, Step, Steps
from tmqp_server.doors.nsq_http.manner import argument, done, name_argument
from tmqp_server.doors.nsq_world import NsqWorld, TopicShapes
from tmqp_server.engine.commands import (
    ClearMessages,
    Command,
    DescribeQueue,
    ListFeeds,
    RemoveChannel,
    RemoveChannels,
    UpdateQueue,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.snapshots import FeedSnapshot
from tmqp_server.engine.options import QueueChanges

__all__ = ["TopicRoutes"]

_NO_TOPIC: Final = "TOPIC_NOT_FOUND"
_NO_CHANNEL: Final = "CHANNEL_NOT_FOUND"


@final
class TopicRoutes:
    """The routes about topics and channels.

    :param shapes: creates topics and channels.
    """

    def __init__(self, world: NsqWorld, shapes: TopicShapes) -> None:
        self._world = world
        self._shapes = shapes
        begins = {
            "/topic/create": self._create_topic,
            "/topic/delete": self._delete_topic,
            "/topic/empty": self._empty_topic,
            "/topic/pause": self._pause_topic,
            "/topic/unpause": self._unpause_topic,
            "/channel/create": self._create_channel,
            "/channel/delete": self._delete_channel,
            "/channel/empty": self._empty_channel,
            "/channel/pause": self._pause_channel,
            "/channel/unpause": self._unpause_channel,
        }
        self.routes = [
            Route("POST", path, begin, takes_body=True) for path, begin in begins.items()
        ]

    # -- topics ---------------------------------------------------------------------------------

    def _create_topic(self, exchange: Exchange) -> Steps:
        topic = name_argument(exchange, "topic", word="INVALID")
        number = exchange.client.number
        return Steps(exchange, lambda me: [([self._shapes.create_topic(number, topic, me)], "")])

    def _delete_topic(self, exchange: Exchange) -> AskingHandler:
        topic = argument(exchange, "topic").encode("utf-8", "replace")
        return _DeleteTopic(exchange, self._world, topic)

    def _empty_topic(self, exchange: Exchange) -> Steps:
        """Empty only the topic's own queue; channels keep their messages (N72)."""
        channel = self._world.names.topic(name_argument(exchange, "topic", word="INVALID"))
        number = exchange.client.number
        return Steps(
            exchange,
            lambda me: [([ClearMessages(number, me, channel, QUEUE, True, True)], _NO_TOPIC)],
        )

    def _pause_topic(self, exchange: Exchange) -> Steps:
        return self._set_topic(exchange, STATUS_PAUSED)

    def _unpause_topic(self, exchange: Exchange) -> Steps:
        return self._set_topic(exchange, STATUS_PUSH)

    def _set_topic(self, exchange: Exchange, status: int) -> Steps:
        channel = self._world.names.topic(argument(exchange, "topic").encode("utf-8", "replace"))
        number = exchange.client.number
        changes = QueueChanges(status=status)
        return Steps(
            exchange,
            lambda me: [([UpdateQueue(number, me, channel, QUEUE, changes)], _NO_TOPIC)],
        )

    # -- channels -------------------------------------------------------------------------------

    def _create_channel(self, exchange: Exchange) -> Steps:
        """Create a channel of an existing topic."""
        topic, channel = _place(exchange)
        number = exchange.client.number
        names = self._world.names

        def steps(me: Handler) -> list[Step]:
            create, *feed = self._shapes.create_channel(number, topic, channel, me)
            return [
                ([DescribeQueue(number, me, names.topic(topic), QUEUE)], _NO_TOPIC),
                ([create], ""),
                (feed, ""),
            ]

        return Steps(exchange, steps)

    def _delete_channel(self, exchange: Exchange) -> Steps:
        topic, channel = _place(exchange)

        def at_end() -> HttpResponse:
            self._world.latencies.forget(topic, channel)
            return done()

        return self._of_channel(
            exchange, lambda me, name: RemoveChannel(exchange.client.number, me, name), at_end
        )

    def _empty_channel(self, exchange: Exchange) -> Steps:
        """Remove waiting, deferred and in-flight messages (N72)."""
        number = exchange.client.number
        return self._of_channel(
            exchange,
            lambda me, name: ClearMessages(number, me, name, QUEUE, True, True, True),
        )

    def _pause_channel(self, exchange: Exchange) -> Steps:
        return self._set_channel(exchange, STATUS_PAUSED)

    def _unpause_channel(self, exchange: Exchange) -> Steps:
        return self._set_channel(exchange, STATUS_ROUND_ROBIN)

    def _set_channel(self, exchange: Exchange, status: int) -> Steps:
        number = exchange.client.number
        changes = QueueChanges(status=status)
        return self._of_channel(
            exchange, lambda me, name: UpdateQueue(number, me, name, QUEUE, changes)
        )

    def _of_channel(
        self,
        exchange: Exchange,
        make: Callable[[Handler, str], Command],
        at_end: Callable[[], HttpResponse] = done,
    ) -> Steps:
        """The steps for a command about a channel: its topic must exist."""
        topic, channel = _place(exchange)
        number = exchange.client.number
        names = self._world.names
        name = names.channel(topic, channel)
        return Steps(
            exchange,
            lambda me: [
                ([DescribeQueue(number, me, names.topic(topic), QUEUE)], _NO_TOPIC),
                ([make(me, name)], _NO_CHANNEL),
            ],
            at_end,
        )


def _place(exchange: Exchange) -> tuple[bytes, bytes]:
    return name_argument(exchange, "topic"), name_argument(exchange, "channel")


@final
class _DeleteTopic(AskingHandler):
    """Removes a topic and its channels."""

    def __init__(self, exchange: Exchange, world: NsqWorld, topic: bytes) -> None:
        super().__init__(exchange)
        self._world = world
        self._topic = topic
        self._knows_channels = False

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the topic's channels."""
        number = self.exchange.client.number
        return [ListFeeds(number, self, self._world.names.topic(self._topic), QUEUE)]

    def heard(self, reply: Reply, now: float) -> Sequence[Command]:
        """Remove the channels and the topic, if the client may remove all of them; answer when they
        are removed."""
        number = self.exchange.client.number
        if not self._knows_channels:
            self._knows_channels = True
            if reply.code != RESULT_OK:
                self._fail(reply.code)
                return ()
            feeds = reply.body
            assert isinstance(feeds, list), "feeds were asked for"
            names = self._world.names
            targets = [each.target for each in feeds if isinstance(each, FeedSnapshot)]
            own = [name for name in targets if (names.of(name) or (b"",))[0] == self._topic]
            return [RemoveChannels(number, self, [*own, names.topic(self._topic)])]
        if reply.code not in (RESULT_OK, RESULT_NOT_FOUND):
            self._fail(reply.code)
            return ()
        self._world.forget_topic(self._topic)
        self.exchange.respond(done())
        return ()

    def _fail(self, code: int) -> None:
        if code == RESULT_NOT_FOUND:
            self.fail(404, _NO_TOPIC)
        else:
            self.refuse(code)
