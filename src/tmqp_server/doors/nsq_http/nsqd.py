"""The HTTP interface of nsqd (N112 to N135)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, final

from tmqp.constants import RESULT_OK
from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.messages import BadRequest, HttpResponse
from tmqp_server.doors.http.routes import Route
from tmqp_server.doors.nsq.message import NsqIds
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq_http.asking import AskingHandler, Steps
from tmqp_server.doors.nsq_http.manner import done, json_answer, old_routes, plain
from tmqp_server.doors.nsq_http.publishing import Publisher
from tmqp_server.doors.nsq_http.stats import (
    ChannelStats,
    Stats,
    TopicStats,
    as_text,
    sorted_stats,
    told,
)
from tmqp_server.doors.nsq_http.topics import TopicRoutes
from tmqp_server.doors.nsq_world import LOG_LEVELS, NsqClient, NsqWorld, TopicShapes
from tmqp_server.engine.commands import (
    Command,
    Configure,
    DescribeQueue,
    DescribeServer,
    ListChannels,
    ListConsumers,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.snapshots import (
    ChannelSnapshot,
    ClientSnapshot,
    QueueSnapshot,
    ServerSnapshot,
)
from tmqp_wires.nsq.identify import ServerTerms

__all__ = ["NsqdRoutes"]

_NS_PER_MS: Final = 1_000_000
_NO: Final = ("false", "0")
#: Queues that are asked about at a time.
_PORTION: Final = 500
_MAX_ADDRESSES: Final = 64
_MAX_ADDRESS: Final = 255
_OLD_NAMES: Final = {
    "/pub": "/put",
    "/mpub": "/mput",
    **{
        f"/{kind}/{action}": f"/{action}_{kind}"
        for kind in ("topic", "channel")
        for action in ("create", "delete", "empty", "pause", "unpause")
    },
}


@final
class NsqdRoutes:
    """The routes of one nsqd.

    :param terms: what the server offers and allows.
    :param shapes: creates topics and channels.
    :param options: further options that ``/config`` shows, by the original's names.
    :param build: the server's name and version for the statistics as text.
    :param old_names: also serve the paths of releases before 1.0.
    """

    def __init__(
        self,
        world: NsqWorld,
        terms: ServerTerms,
        shapes: TopicShapes,
        ids: NsqIds,
        offset_s: float,
        options: dict[str, object],
        build: str,
        *,
        old_names: bool = True,
    ) -> None:
        self._world = world
        self._terms = terms
        self._offset_s = offset_s
        self._build = build
        self._options = {**_options_of(terms), **options}
        publisher = Publisher(world, terms, shapes, ids, offset_s)
        most = terms.max_msg_size
        routes = [
            Route("GET", "/ping", _ping, public=True),
            Route("GET", "/info", self._info, public=True),
            Route(
                "POST",
                "/pub",
                publisher.pub,
                overlaps=True,
                takes_body=True,
                max_body_bytes=most,
                too_large="MSG_TOO_BIG",
            ),
            Route(
                "POST",
                "/mpub",
                publisher.mpub,
                takes_body=True,
                max_body_bytes=terms.max_body_size,
                too_large="BODY_TOO_BIG",
            ),
            Route("GET", "/stats", self._stats),
            Route("GET", "/config/{option}", self._option),
            Route(
                "PUT",
                "/config/{option}",
                self._set_option,
                takes_body=True,
                max_body_bytes=most,
                too_large="INVALID_VALUE",
            ),
            *TopicRoutes(world, shapes).routes,
        ]
        self.routes = routes + (old_routes(routes, _OLD_NAMES) if old_names else [])

    def _info(self, exchange: Exchange) -> None:
        about, terms = self._world.about, self._terms
        answer = {
            "version": terms.version,
            "broadcast_address": about.broadcast_address,
            "hostname": about.hostname,
            "http_port": about.http_port,
            "tcp_port": about.tcp_port,
            "start_time": self._start_time,
            "max_heartbeat_interval": terms.max_heartbeat_interval_ms * _NS_PER_MS,
            "max_output_buffer_size": terms.max_output_buffer_size,
            "max_output_buffer_timeout": terms.max_output_buffer_timeout_ms * _NS_PER_MS,
            "max_deflate_level": terms.max_deflate_level,
            "topology_zone": "",
            "topology_region": "",
        }
        exchange.respond(json_answer(answer))

    @property
    def _start_time(self) -> int:
        return int(self._world.started_s + self._offset_s)

    def _stats(self, exchange: Exchange) -> AskingHandler:
        stats = Stats(self._terms.version, self._start_time)
        return _Statistics(exchange, self._world, stats, self._offset_s, self._build)

    # -- configuration --------------------------------------------------------------------------

    def _option(self, exchange: Exchange) -> None:
        """``GET /config/OPTION`` (N131)."""
        exchange.respond(json_answer(self._value(exchange.wanted.text("option"))))

    def _value(self, name: str) -> object:
        world = self._world
        if name == "log_level":
            return LOG_LEVELS[world.log_level]
        if name == "nsqlookupd_tcp_addresses":
            return list(world.lookup_addresses)
        if name == "broadcast_address":
            return world.about.broadcast_address
        if name not in self._options:
            raise BadRequest(400, "INVALID_OPTION")
        return self._options[name]

    def _set_option(self, exchange: Exchange) -> Steps:
        """``PUT /config/OPTION``: set the lookupds or the log level.  Clients need the right to
        change settings."""
        name, body = exchange.wanted.text("option"), exchange.wanted.body
        change = self._change(name, body)

        def at_end() -> HttpResponse:
            change()
            return json_answer(self._value(name))

        number = exchange.client.number
        return Steps(exchange, lambda me: [([Configure(number, me)], "")], at_end)

    def _change(self, name: str, body: bytes) -> Callable[[], None]:
        """The function that sets an option.

        :raises BadRequest: when the option cannot be set, or the value is invalid.
        """
        if not body:
            raise BadRequest(413, "INVALID_VALUE")
        if name == "log_level":
            level = body.decode("utf-8", "replace").lower()
            if level not in LOG_LEVELS:
                raise BadRequest(400, "INVALID_VALUE")
            return partial(self._world.set_log_level, level)
        if name == "nsqlookupd_tcp_addresses":
            return partial(self._world.set_lookups, _addresses(body))
        raise BadRequest(400, "INVALID_OPTION")


def _ping(exchange: Exchange) -> None:
    exchange.respond(plain(b"OK"))


def _addresses(body: bytes) -> list[str]:
    """The addresses in a JSON list; null means an empty list.

    :raises BadRequest: when it is not a list of valid length and texts.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest(400, "INVALID_VALUE") from None
    given = [] if given is None else given
    if not isinstance(given, list) or len(given) > _MAX_ADDRESSES:
        raise BadRequest(400, "INVALID_VALUE")
    for each in given:
        if not isinstance(each, str) or not 0 < len(each) <= _MAX_ADDRESS:
            raise BadRequest(400, "INVALID_VALUE")
    return given


def _options_of(terms: ServerTerms) -> dict[str, object]:
    """The terms as options of ``/config``, times in nanoseconds."""
    found: dict[str, object] = {}
    for name in ServerTerms.__dataclass_fields__:
        value = getattr(terms, name)
        if name.endswith("_ms"):
            found[name.removesuffix("_ms")] = value * _NS_PER_MS
        elif name.startswith("max_") or name in ("deflate", "snappy", "tls_required"):
            found[name] = value
    found["client_timeout"] = 2 * terms.heartbeat_interval_ms * _NS_PER_MS
    return found


@final
class _Statistics(AskingHandler):
    """``GET /stats`` (N121): asks the broker for all channels, then for the queue of each, in
    portions."""

    def __init__(
        self, exchange: Exchange, world: NsqWorld, stats: Stats, offset_s: float, build: str
    ) -> None:
        super().__init__(exchange)
        query = exchange.wanted.query
        self._world = world
        self._stats = stats
        self._offset_s = offset_s
        self._build = build
        self._as_json = query.get("format") == "json"
        self._topic = query.get("topic", "").encode("utf-8", "replace")
        self._channel = query.get("channel", "").encode("utf-8", "replace")
        self._clients = query.get("include_clients") not in _NO
        self._memory = query.get("include_mem") not in _NO
        #: The channels of the broker that are asked about: topic, channel and number of consumers.
        self._names: list[tuple[bytes, bytes, int]] = []
        #: The clients that speak NSQ, by what they consume.
        self._found: dict[tuple[bytes, bytes], list[NsqClient]] = {}
        self._consumers: dict[tuple[bytes, bytes], int] = {}
        self._at = 0
        self._asked = 0
        self._now_ns = 0
        self._topics: dict[bytes, TopicStats] = {}
        self._channels: list[tuple[bytes, ChannelStats]] = []

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the memory in use, if wanted, and for the channels."""
        number = self.exchange.client.number
        if self._memory:
            return [DescribeServer(number, self), ListChannels(number, self)]
        return [ListChannels(number, self)]

    def heard(self, reply: Reply, now: float) -> Sequence[Command]:
        """Collect a reply, and answer when all have arrived."""
        body = reply.body
        self._now_ns = int((now + self._offset_s) * 1e9)
        if self._memory:
            self._memory = False
            known = isinstance(body, ServerSnapshot)
            self._stats.memory_bytes = body.total_bytes if isinstance(body, ServerSnapshot) else 0
            assert known or reply.code != RESULT_OK, "the server was asked for"
            return ()
        if not self._asked and not self._at:
            if reply.code != RESULT_OK:
                self.refuse(reply.code)
                return ()
            assert isinstance(body, list), "channels were asked for"
            self._choose(body)
        else:
            self._asked -= 1
            if isinstance(body, QueueSnapshot):
                self._add(body)
            elif isinstance(body, list):
                self._count(body)
            # Channels that were removed meanwhile, or may not be seen, are left out.
            if self._asked:
                return ()
        return self._ask(now)

    def _choose(self, channels: list[ChannelSnapshot]) -> None:
        """Choose the topics and channels that the request asks for."""
        for client in self._world.clients.values():
            if client.channel:
                self._found.setdefault((client.topic, client.channel), []).append(client)
        for each in channels:
            names = self._world.names.of(each.name)
            if names is None or (self._topic and names[0] != self._topic):
                continue
            if not names[1] or not self._channel or names[1] == self._channel:
                self._names.append((*names, each.active_clients))
                self._consumers[names] = each.active_clients

    def _ask(self, now: float) -> Sequence[Command]:
        """Ask about the next queues, or answer."""
        names = self._names[self._at : self._at + _PORTION]
        self._at += len(names)
        if not names:
            self._answer(now)
            return ()
        number = self.exchange.client.number
        of = self._world.names
        commands: list[Command] = []
        for topic, channel, consumers in names:
            name = of.channel(topic, channel) if channel else of.topic(topic)
            commands.append(DescribeQueue(number, self, name, QUEUE))
            if channel and consumers and self._clients:
                commands.append(ListConsumers(number, self, name))
        self._asked = len(commands)
        return commands

    def _count(self, consumers: list[ClientSnapshot]) -> None:
        """Copy the broker's counts of consumers."""
        for each in consumers:
            client = self._world.clients.get(each.session)
            if client is not None:
                client.in_flight_count = each.in_flight
                client.message_count = each.delivered
                client.finish_count = each.acknowledged - client.failed_finishes

    def _add(self, queue: QueueSnapshot) -> None:
        names = self._world.names.of(queue.channel)
        assert names is not None, "it was asked for by its names"
        topic, channel = names
        if not channel:
            size = self._world.message_bytes.get(topic, 0)
            self._topics[topic] = TopicStats(topic, queue, size)
            return
        clients = self._found.get(names, [])
        count = max(self._consumers[names], len(clients))
        shown = clients if self._clients else None
        latency = self._world.latencies.told(topic, channel, self._now_ns)
        self._channels.append((topic, ChannelStats(channel, queue, count, shown, latency)))

    def _answer(self, now: float) -> None:
        stats = self._stats
        for topic, channel in self._channels:
            if topic in self._topics:
                self._topics[topic].channels.append(channel)
        for topic, each in self._topics.items():
            each.latency = self._world.latencies.told(topic, b"", self._now_ns)
        topics = sorted_stats(list(self._topics.values()))
        known = topics or not self._topic
        if known:
            if self._channel:
                topics = [each for each in topics if each.channels]
            stats.topics = topics
            if self._clients:
                producers = [each for each in self._world.clients.values() if each.published]
                stats.producers = producers
        if self._as_json:
            self.exchange.respond(json_answer(told(stats, self._offset_s)))
        else:
            text = as_text(stats, now, self._world.started_s, self._build)
            self.exchange.respond(done(text))
