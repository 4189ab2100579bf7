"""The HTTP interface of nsqadmin (N150 to N157): the page's files, the API, the configuration."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from tmqp_nsq import NSQ_VERSION
from tmqp_nsq.addresses import parse_address
from tmqp_nsq.admin.actions import Notifier, Permissions, is_same_origin
from tmqp_nsq.admin.graphite import Graphite
from tmqp_nsq.flags import FlagError
from tmqp_nsq.nodes.aggregates import add_topic, topic_of
from tmqp_nsq.nodes.cluster import Answer, Cluster, Node, version_key
from tmqp_nsq.nodes.upstream import UpstreamError
from tmqp_nsq.web import Request, Response, json_response

__all__ = ["AdminSite"]

logger = logging.getLogger("tmqp_nsq.admin")

_NAME: Final = re.compile(r"[.a-zA-Z0-9_-]+(#ephemeral)?")
_MOST_NAME: Final = 64
_FILES: Final = {
    "app.js": "text/javascript; charset=utf-8",
    "palette.css": "text/css; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
#: Of the server's console, whose colours the page has.
_PALETTE: Final = "palette.css"
#: The first part of each path that the page itself serves.
_PAGES: Final = frozenset({"topics", "nodes", "counter", "lookup"})
_ACTIONS: Final = frozenset({"pause", "unpause", "empty"})
_LEVELS: Final = ("debug", "info", "warn", "error", "fatal")
_LOG_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}

_Route = Callable[[Request, tuple[str, ...]], Awaitable[Response]]


class _FailedError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status


def _is_name(text: object) -> bool:
    """Whether a text can name a topic or a channel (N17)."""
    return isinstance(text, str) and len(text) <= _MOST_NAME and _NAME.fullmatch(text) is not None


def _answer(answer: Answer, fields: dict[str, Any]) -> Response:
    """The fields, and the warnings as the message."""
    for warning in answer.warnings:
        logger.warning("%s", warning)
    text = "WARNING: " + "; ".join(answer.warnings) if answer.warnings else ""
    return json_response(200, {**fields, "message": text})


def _body(request: Request) -> dict[str, Any]:
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _FailedError(400, "INVALID_BODY")
    return value


class AdminSite:
    """Answers requests to nsqadmin."""

    def __init__(
        self,
        cluster: Cluster,
        permissions: Permissions,
        graphite: Graphite,
        notifier: Notifier,
        base_path: str = "/",
    ) -> None:
        self._cluster = cluster
        self._permissions = permissions
        self._graphite = graphite
        self._notifier = notifier
        self._base = "/" + "/".join(part for part in base_path.split("/") if part)
        self._base = self._base if self._base.endswith("/") else self._base + "/"
        folder = files("tmqp_nsq.admin") / "page"
        page = (folder / "index.html").read_text(encoding="utf-8").replace("BASE_PATH/", self._base)
        self._page = page.encode("utf-8")
        console = files("tmqp_server.admin.console") / "page"
        self._files = {
            name: ((console if name == _PALETTE else folder) / name).read_bytes() for name in _FILES
        }
        self._level = "info"

    # --- Requests ---------------------------------------------------------------------------

    async def handle(self, request: Request) -> Response:
        """Answer a request."""
        if request.path + "/" == self._base:
            return Response(302, headers=(("Location", self._base), *self._guards()))
        if not request.path.startswith(self._base):
            response = json_response(404, {"message": "NOT_FOUND"})
        else:
            inner = request.path[len(self._base) :].strip("/")
            parts = tuple(Request("", inner, {}, {}, b"", "").parts)
            try:
                response = await self._routed(request, parts)
            except _FailedError as error:
                response = json_response(error.status, {"message": str(error)})
            except UpstreamError as error:
                logger.error("%s %s: %s", request.method, request.path, error)
                response = json_response(502, {"message": f"UPSTREAM_ERROR: {error}"})
        return Response(
            response.status,
            response.body,
            response.content_type,
            (*response.headers, *self._guards()),
        )

    def _guards(self) -> tuple[tuple[str, str], ...]:
        """What tells a browser to load and run nothing but the page's own files."""
        images = "'self'"
        graphite = self._graphite
        if graphite.url and not graphite.is_proxied:
            url = urlsplit(graphite.url)
            images += f" {url.scheme}://{url.netloc}"
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
            f" img-src {images}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return (
            ("Content-Security-Policy", policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-cache"),
        )

    async def _routed(self, request: Request, parts: tuple[str, ...]) -> Response:
        first = parts[0] if parts else ""
        if first == "ping" and len(parts) == 1:
            return self._only_get(request) or Response(200, b"OK", "text/plain; charset=utf-8")
        if first == "static" and len(parts) == 2 and parts[1] in _FILES:
            file = Response(200, self._files[parts[1]], _FILES[parts[1]])
            return self._only_get(request) or file
        if not first or (first in _PAGES and len(parts) <= 3):
            page = Response(200, self._page, "text/html; charset=utf-8")
            return self._only_get(request) or page
        if first == "render" and len(parts) == 1:
            return self._only_get(request) or await self._graphite.render(request)
        if first == "config" and len(parts) == 2:
            return await self._chosen(
                request, parts[1:], {"GET": self._config, "PUT": self._config}
            )
        if first == "api":
            found = self._api(parts[1:])
            if found:
                return await self._chosen(request, parts[2:], found)
        return json_response(404, {"message": "NOT_FOUND"})

    @staticmethod
    def _only_get(request: Request) -> Response | None:
        if request.method in ("GET", "HEAD"):
            return None
        return _not_allowed({"GET": None, "HEAD": None})

    async def _chosen(
        self, request: Request, names: tuple[str, ...], routes: dict[str, _Route]
    ) -> Response:
        route = routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            return _not_allowed(routes)
        if request.method not in ("GET", "HEAD") and not is_same_origin(request):
            raise _FailedError(403, "FORBIDDEN")
        return await route(request, names)

    def _api(self, parts: tuple[str, ...]) -> dict[str, _Route]:
        shape = (parts[0] if parts else "", len(parts))
        table: dict[tuple[str, int], dict[str, _Route]] = {
            ("topics", 1): {"GET": self._topics, "POST": self._create},
            ("topics", 2): {"GET": self._topic, "POST": self._act, "DELETE": self._delete},
            ("topics", 3): {"GET": self._channel, "POST": self._act, "DELETE": self._delete},
            ("nodes", 1): {"GET": self._nodes},
            ("nodes", 2): {"GET": self._node, "DELETE": self._tombstone},
            ("counter", 1): {"GET": self._counter},
            ("graphite", 1): {"GET": self._rate},
            ("settings", 1): {"GET": self._settings},
        }
        return table.get(shape, {})

    def _admin_only(self, request: Request) -> None:
        if not self._permissions.is_admin(request):
            raise _FailedError(403, "FORBIDDEN")

    # --- Looking ----------------------------------------------------------------------------

    async def _settings(self, request: Request, _names: tuple[str, ...]) -> Response:
        """What the page needs to know about this program and its user; an addition of ours."""
        fields = {
            "version": NSQ_VERSION,
            "lookupds": list(self._cluster.lookupds),
            "user": self._permissions.user(request),
            "admin": self._permissions.is_admin(request),
            "graphite": self._graphite.settings(),
        }
        return json_response(200, {**fields, "message": ""})

    async def _topics(self, request: Request, _names: tuple[str, ...]) -> Response:
        if request.query.get("inactive") == "true":
            answer = await self._cluster.inactive()
        elif request.query.get("depths") == "true":
            return await self._depths()
        else:
            answer = await self._cluster.topics()
        return _answer(answer, {"topics": answer.value})

    async def _depths(self) -> Response:
        """All topics with their sums, for the list of topics; an addition of ours."""
        topics = await self._cluster.topics()
        nodes = await self._cluster.nodes()
        stats = await self._cluster.stats(nodes.value, clients=False)
        sums: dict[str, dict[str, Any]] = {}
        for row in stats.value:
            sums[row["topic_name"]] = add_topic(sums.get(row["topic_name"]), row)
        rows = []
        for name in sorted({*topics.value, *sums}):
            total = sums.get(name) or topic_of("*", "", {"topic_name": name})
            channels = total["channels"]
            rows.append(
                {
                    "topic_name": name,
                    "depth": total["depth"],
                    "message_count": total["message_count"],
                    "paused": total["paused"],
                    "nodes": len(total["nodes"] or ()),
                    "channels": len(channels),
                    "channel_depth": sum(each["depth"] for each in channels),
                    "in_flight_count": sum(each["in_flight_count"] for each in channels),
                }
            )
        warnings = topics.warnings + nodes.warnings + stats.warnings
        return _answer(Answer(None, warnings), {"topics": rows})

    async def _topic(self, _request: Request, names: tuple[str, ...]) -> Response:
        answer = await self._cluster.topic(names[0])
        total = answer.value
        if total is None:
            if not self._cluster.lookupds:
                raise _FailedError(404, "TOPIC_NOT_FOUND")
            total = {**topic_of("*", "", {"topic_name": names[0]}), "nodes": []}
        return _answer(answer, total)

    async def _channel(self, _request: Request, names: tuple[str, ...]) -> Response:
        answer = await self._cluster.channel(names[0], names[1])
        if answer.value is None:
            raise _FailedError(404, "CHANNEL_NOT_FOUND")
        return _answer(answer, answer.value)

    async def _nodes(self, _request: Request, _names: tuple[str, ...]) -> Response:
        answer = await self._cluster.nodes()
        newest = max((version_key(node.version) for node in answer.value), default=())
        rows = [
            {
                "remote_addresses": node.remote_addresses,
                "remote_address": node.remote_address,
                "hostname": node.hostname,
                "broadcast_address": node.broadcast_address,
                "tcp_port": node.tcp_port,
                "http_port": node.http_port,
                "version": node.version,
                "topics": [
                    {"topic": topic, "tombstoned": gone}
                    for topic, gone in sorted(node.topics.items())
                ],
                "out_of_date": version_key(node.version) < newest,
            }
            for node in sorted(answer.value, key=lambda each: (each.hostname, each.name))
        ]
        return _answer(answer, {"nodes": rows})

    async def _found(self, name: str) -> tuple[Node, list[str]]:
        answer = await self._cluster.nodes()
        for node in answer.value:
            if node.name == name:
                return node, answer.warnings
        raise _FailedError(404, "NODE_NOT_FOUND")

    async def _node(self, _request: Request, names: tuple[str, ...]) -> Response:
        node, warnings = await self._found(names[0])
        answer = await self._cluster.stats([node])
        channels = [channel for topic in answer.value for channel in topic["channels"]]
        fields = {
            "node": node.name,
            "topics": answer.value,
            "total_messages": sum(topic["message_count"] for topic in answer.value),
            "total_clients": sum(channel["client_count"] for channel in channels),
        }
        return _answer(Answer(None, warnings + answer.warnings), fields)

    async def _counter(self, _request: Request, _names: tuple[str, ...]) -> Response:
        nodes = await self._cluster.nodes()
        answer = await self._cluster.stats(nodes.value, clients=False)
        stats = {
            f"{channel['topic_name']}:{channel['channel_name']}:{channel['node']}": {
                "node": channel["node"],
                "topic_name": channel["topic_name"],
                "channel_name": channel["channel_name"],
                "message_count": channel["message_count"],
            }
            for topic in answer.value
            for channel in topic["channels"]
        }
        return _answer(Answer(None, nodes.warnings + answer.warnings), {"stats": stats})

    async def _rate(self, request: Request, _names: tuple[str, ...]) -> Response:
        return await self._graphite.rate(request)

    # --- Changing ---------------------------------------------------------------------------

    async def _create(self, request: Request, _names: tuple[str, ...]) -> Response:
        self._admin_only(request)
        body = _body(request)
        topic, channel = body.get("topic"), body.get("channel") or ""
        if not _is_name(topic):
            raise _FailedError(400, "INVALID_TOPIC")
        if channel and not _is_name(channel):
            raise _FailedError(400, "INVALID_CHANNEL")
        answer = await self._cluster.create(str(topic), str(channel))
        self._notifier.notify(request, "create_topic", topic=str(topic))
        if channel:
            self._notifier.notify(request, "create_channel", topic=str(topic), channel=str(channel))
        return _answer(answer, {})

    async def _act(self, request: Request, names: tuple[str, ...]) -> Response:
        self._admin_only(request)
        action = _body(request).get("action")
        if action not in _ACTIONS:
            raise _FailedError(400, "INVALID_ACTION")
        return await self._changed(request, str(action), names)

    async def _delete(self, request: Request, names: tuple[str, ...]) -> Response:
        self._admin_only(request)
        return await self._changed(request, "delete", names)

    async def _changed(self, request: Request, action: str, names: tuple[str, ...]) -> Response:
        topic, channel = names[0], names[1] if len(names) > 1 else ""
        answer = await self._cluster.act(action, topic, channel)
        kind = "channel" if channel else "topic"
        self._notifier.notify(request, f"{action}_{kind}", topic=topic, channel=channel)
        return _answer(answer, {})

    async def _tombstone(self, request: Request, names: tuple[str, ...]) -> Response:
        self._admin_only(request)
        topic = _body(request).get("topic")
        if not _is_name(topic):
            raise _FailedError(400, "INVALID_TOPIC")
        node, warnings = await self._found(names[0])
        answer = await self._cluster.tombstone(node, str(topic))
        self._notifier.notify(request, "tombstone_topic_producer", topic=str(topic), node=node.name)
        return _answer(Answer(None, warnings + answer.warnings), {})

    # --- Configuration ----------------------------------------------------------------------

    async def _config(self, request: Request, names: tuple[str, ...]) -> Response:
        """Show or change an option while the program runs (as N131 for nsqd)."""
        if not self._permissions.may_configure(request):
            raise _FailedError(403, "FORBIDDEN")
        option = names[0]
        if request.method == "PUT":
            self._set_option(option, request.body)
        if option == "nsqlookupd_http_addresses":
            return json_response(200, list(self._cluster.lookupds))
        if option == "log_level":
            return json_response(200, _LEVELS.index(self._level) + 1)
        raise _FailedError(400, "INVALID_OPTION")

    def _set_option(self, option: str, body: bytes) -> None:
        if not body:
            raise _FailedError(413, "INVALID_VALUE")
        text = body.decode("utf-8", "replace")
        if option == "log_level":
            if text.lower() not in _LEVELS:
                raise _FailedError(400, "INVALID_VALUE")
            self._level = text.lower()
            logging.getLogger("tmqp_nsq").setLevel(_LOG_LEVELS[self._level])
        elif option == "nsqlookupd_http_addresses":
            self._cluster.lookupds = _address_list(text)
        else:
            raise _FailedError(400, "INVALID_OPTION")

    def note_level(self, level: str) -> None:
        """Tell the level with which the program logs."""
        self._level = level


def _address_list(text: str) -> tuple[str, ...]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list) or not value:
        raise _FailedError(400, "INVALID_VALUE")
    try:
        return tuple(str(parse_address(str(each), "lookupd-http-address")) for each in value)
    except FlagError:
        raise _FailedError(400, "INVALID_VALUE") from None


def _not_allowed(routes: dict[str, Any]) -> Response:
    answer = json_response(405, {"message": "METHOD_NOT_ALLOWED"})
    allow = ", ".join([*routes, "OPTIONS"])
    return Response(405, answer.body, answer.content_type, (*answer.headers, ("Allow", allow)))
