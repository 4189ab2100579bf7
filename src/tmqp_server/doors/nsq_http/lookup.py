"""The HTTP interface of nsqlookupd (N144 to N147)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.messages import BadRequest
from tmqp_server.doors.http.routes import Route
from tmqp_server.doors.nsq_http.manner import (
    argument,
    done,
    json_answer,
    name_argument,
    old_routes,
    plain,
)
from tmqp_server.doors.nsq_lookup.door import Lookupd
from tmqp_server.doors.nsq_lookup.table import Producer, Registration, TableFullError

__all__ = ["LookupRoutes"]

#: Go's value for a time that was never set, in nanoseconds.
_GO_NEVER: Final = -6795364578871345152
_NS: Final = 1_000_000_000
_OLD_NAMES: Final = {
    "/topic/create": "/create_topic",
    "/topic/delete": "/delete_topic",
    "/topic/tombstone": "/tombstone_topic_producer",
    "/channel/create": "/create_channel",
    "/channel/delete": "/delete_channel",
}


@final
class LookupRoutes:
    """The routes of one lookupd.

    :param wall_clock_offset_s: seconds to add to the engine's time for Unix time.
    :param old_names: also serve the paths of releases before 1.0.
    """

    def __init__(
        self,
        lookupd: Lookupd,
        wall_clock_offset_s: float = 0.0,
        *,
        old_names: bool = True,
    ) -> None:
        self._lookupd = lookupd
        self._table = lookupd.table
        self._offset_s = wall_clock_offset_s
        routes = [
            Route("GET", "/ping", _ping, public=True),
            Route("GET", "/info", self._info, public=True),
            Route("GET", "/debug", self._debug),
            Route("GET", "/lookup", self._lookup),
            Route("GET", "/topics", self._topics),
            Route("GET", "/channels", self._channels),
            Route("GET", "/nodes", self._nodes),
            Route("POST", "/topic/create", self._create_topic, takes_body=True),
            Route("POST", "/topic/delete", self._delete_topic, takes_body=True),
            Route("POST", "/channel/create", self._create_channel, takes_body=True),
            Route("POST", "/channel/delete", self._delete_channel, takes_body=True),
            Route("POST", "/topic/tombstone", self._tombstone, takes_body=True),
        ]
        self.routes: Iterable[Route] = routes + (
            old_routes(routes, _OLD_NAMES) if old_names else []
        )

    def _info(self, exchange: Exchange) -> None:
        exchange.respond(json_answer({"version": self._lookupd.version}))

    # -- questions ------------------------------------------------------------------------------

    def _topics(self, exchange: Exchange) -> None:
        exchange.respond(json_answer({"topics": _texts(self._table.topic_names())}))

    def _channels(self, exchange: Exchange) -> None:
        topic = argument(exchange, "topic").encode("utf-8", "replace")
        exchange.respond(json_answer({"channels": _texts(self._table.channel_names(topic))}))

    def _lookup(self, exchange: Exchange) -> None:
        topic = argument(exchange, "topic").encode("utf-8", "replace")
        producers = self._table.producers_of(topic, exchange.now)
        if producers is None:
            raise BadRequest(404, "TOPIC_NOT_FOUND")
        answer = {
            "channels": _texts(self._table.channel_names(topic)),
            "producers": [_told(each) for each in producers],
        }
        exchange.respond(json_answer(answer))

    def _nodes(self, exchange: Exchange) -> None:
        """The nodes.  Both lists of a producer have the same length, because clients use the index
        of one in the other (N145)."""
        nodes: list[dict[str, object]] = []
        for producer in self._table.active(exchange.now):
            topics = self._table.topics_of(producer, exchange.now)
            node = _told(producer)
            node["tombstones"] = [hidden for _, hidden in topics]
            node["topics"] = _texts([topic for topic, _ in topics])
            nodes.append(node)
        exchange.respond(json_answer({"producers": nodes}))

    def _debug(self, exchange: Exchange) -> None:
        """Every registration with its producers."""
        table = self._table
        found: dict[str, object] = {}
        if table.producers:
            everybody = Registration()
            everybody.tombstones = dict.fromkeys(table.producers.values(), -1.0)
            found["client::"] = self._shown(everybody)
        for topic, registration in table.topics.items():
            found[f"topic:{topic.decode()}:"] = self._shown(registration)
        for topic, channels in table.channels.items():
            for channel, registration in channels.items():
                name = f"channel:{topic.decode()}:{channel.decode()}"
                found[name] = self._shown(registration)
        exchange.respond(json_answer(dict(sorted(found.items()))))

    def _shown(self, registration: Registration) -> list[dict[str, object]]:
        return [
            {
                "broadcast_address": producer.about.broadcast_address,
                "hostname": producer.about.hostname,
                "http_port": producer.about.http_port,
                "id": producer.peer,
                "last_update": self._unix_ns(producer.seen_s),
                "tcp_port": producer.about.tcp_port,
                "tombstoned": since >= 0.0,
                "tombstoned_at": self._unix_ns(since) if since >= 0.0 else _GO_NEVER,
                "topology_region": producer.about.topology_region,
                "topology_zone": producer.about.topology_zone,
                "version": producer.about.version,
            }
            for producer, since in registration.tombstones.items()
        ]

    def _unix_ns(self, seconds: float) -> int:
        return int((seconds + self._offset_s) * _NS)

    # -- changes --------------------------------------------------------------------------------

    def _create_topic(self, exchange: Exchange) -> None:
        self._create(exchange, name_argument(exchange, "topic"), b"")

    def _create_channel(self, exchange: Exchange) -> None:
        topic = name_argument(exchange, "topic")
        self._create(exchange, topic, name_argument(exchange, "channel"))

    def _create(self, exchange: Exchange, topic: bytes, channel: bytes) -> None:
        try:
            self._table.create(topic, channel)
        except TableFullError:
            raise BadRequest(503, "LIMIT_EXCEEDED") from None
        exchange.respond(done())

    def _delete_topic(self, exchange: Exchange) -> None:
        self._table.delete_topic(argument(exchange, "topic").encode("utf-8", "replace"))
        exchange.respond(done())

    def _delete_channel(self, exchange: Exchange) -> None:
        topic = name_argument(exchange, "topic")
        if not self._table.delete_channel(topic, name_argument(exchange, "channel")):
            raise BadRequest(404, "CHANNEL_NOT_FOUND")
        exchange.respond(done())

    def _tombstone(self, exchange: Exchange) -> None:
        topic = argument(exchange, "topic").encode("utf-8", "replace")
        self._table.tombstone(topic, argument(exchange, "node"), exchange.now)
        exchange.respond(done())


def _ping(exchange: Exchange) -> None:
    exchange.respond(plain(b"OK"))


def _texts(names: list[bytes]) -> list[str]:
    return [name.decode() for name in names]


def _told(producer: Producer) -> dict[str, object]:
    """A producer as JSON."""
    about = producer.about
    return {
        "remote_address": producer.peer,
        "hostname": about.hostname,
        "broadcast_address": about.broadcast_address,
        "tcp_port": about.tcp_port,
        "http_port": about.http_port,
        "version": about.version,
        "topology_zone": about.topology_zone,
        "topology_region": about.topology_region,
    }
