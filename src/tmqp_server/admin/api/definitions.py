"""``/definitions``: exports the topology as tables of a configuration file, and imports it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from tmqp.constants import RESULT_OK
from tmqp_server.admin.api.manner import read_object
from tmqp_server.admin.api.running import Stepping, Steps, need, words_of
from tmqp_server.admin.api.shapes import values_of_options
from tmqp_server.admin.api.table import Api, Operation, flag
from tmqp_server.admin.api.toml import TOML, is_toml, read_toml, toml_of, wants_toml
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse
from tmqp_server.engine.commands import (
    AddBinding,
    AddFeed,
    Command,
    Configure,
    CreateChannel,
    CreateQueue,
    CreateRouter,
    DescribeChannel,
    DescribeQueue,
    ListBindings,
    ListFeeds,
    ListRouters,
    SeeServer,
    SetRouterEnabled,
    SurveyChannels,
    SurveyQueues,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.snapshots import ChannelSnapshot, QueueSnapshot
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, QUEUE_OPTIONS, Option
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.options import DeclaredChannel, declared_channels
from tmqp_server.settings.routers import (
    ROUTE_METHODS,
    DeclaredRouter,
    declared_routers,
    values_of_binding,
)

__all__ = ["DEFINITION_OPERATIONS"]

_DUPLICATE: Final = 481
_METHOD_WORDS: Final = {number: word for word, number in ROUTE_METHODS.items()}
#: The pause after each portion, for other work; seconds.
_PAUSE_S: Final = 0.001
#: The most channels and queues of an import.
_MOST: Final = 10_000

_Part = Generator[Command | float, Reply, Any]


def _given(options: object, declared: tuple[Option, ...]) -> dict[str, object]:
    found = values_of_options(options, declared)
    return {name: value for name, value in found.items() if value not in (None, "")}


# --- Export --------------------------------------------------------------------------------------


class _Export:
    """Collects everything that the client may see."""

    def __init__(self, exchange: Exchange) -> None:
        self._as_toml = wants_toml(exchange.wanted)
        self._channels: dict[str, dict[str, Any]] = {}
        self._defaults: dict[str, dict[str, object]] = {}

    def steps(self, session: int, request: object) -> Steps:
        """Collect channels, queues, feeds and routers, in this order."""
        need((yield SeeServer(session, request)))
        yield from self._look(session, request, queues=False)
        yield from self._look(session, request, queues=True)
        for name, table in self._channels.items():
            reply = yield ListFeeds(session, request, name)
            feeds = reply.body if isinstance(reply.body, list) else []
            if feeds:
                table["feeds"] = [_feed(each) for each in feeds]
        routers = yield from _routers(session, request)
        tables = {"channels": list(self._channels.values()), "routers": routers}
        if self._as_toml:
            return HttpResponse(200, toml_of(tables), TOML.encode())
        return HttpResponse.json(200, tables)

    def _look(self, session: int, request: object, *, queues: bool) -> _Part:
        walk = None
        while walk is None or not walk.done:
            kind = SurveyQueues if queues else SurveyChannels
            command = kind(session, request, "", walk)
            reply = yield command
            for each in reply.body if isinstance(reply.body, list) else []:
                if isinstance(each, QueueSnapshot):
                    self._note_queue(each)
                else:
                    self._note_channel(each)
            walk = command.walk
            assert walk is not None, "it begins with the first command"
            yield _PAUSE_S

    def _note_channel(self, item: ChannelSnapshot) -> None:
        if item.owner is not None:
            return  # it ends with a connection
        self._defaults[item.name] = _given(item.options.queue, QUEUE_OPTIONS)
        self._channels[item.name] = {
            "name": item.name,
            **_given(item.options, CHANNEL_OPTIONS),
            "queue": self._defaults[item.name],
            "queues": [],
        }

    def _note_queue(self, item: QueueSnapshot) -> None:
        table = self._channels.get(item.channel)
        if table is None:
            return
        defaults = self._defaults[item.channel]
        own = _given(item.options, QUEUE_OPTIONS)
        table["queues"].append(
            {
                "id": item.queue_id,
                **{name: value for name, value in own.items() if defaults.get(name) != value},
            }
        )


def _feed(item: Any) -> dict[str, object]:
    found: dict[str, object] = {
        "queue": item.queue_id,
        "target": item.target,
        "target_queue": item.target_queue,
    }
    if item.text:
        found["filter"] = item.text
    if item.language and item.text:
        found["filter_language"] = item.language
    return found


def _routers(session: int, request: object) -> _Part:
    reply = yield ListRouters(session, request)
    found: list[dict[str, object]] = []
    for each in reply.body if isinstance(reply.body, list) else []:
        if each.method not in _METHOD_WORDS:
            continue  # a class of the user's, which the configuration names
        bindings = yield ListBindings(session, request, each.name)
        items = bindings.body if isinstance(bindings.body, list) else []
        found.append(
            {
                "name": each.name,
                "method": _METHOD_WORDS[each.method],
                "enabled": each.enabled,
                "bindings": [values_of_binding(binding) for binding in items],
            }
        )
    return found


def _export(_api: Api, exchange: Exchange) -> Handler:
    return Stepping(exchange, _Export(exchange).steps)


# --- Import --------------------------------------------------------------------------------------


class _Import:
    """Creates and changes what the tables say; it removes nothing."""

    def __init__(self, exchange: Exchange) -> None:
        request = exchange.wanted
        given = read_toml(request.body) if is_toml(request) else read_object(request.body)
        for key in given:
            if key not in ("channels", "routers"):
                raise BadRequest(
                    422, f"there is no member {key[:64]!r}; the members are channels and routers"
                )
        try:
            self._channels = declared_channels(given.get("channels", []))
            self._routers = declared_routers(given.get("routers", []))
        except (ConfigError, ValueError, TypeError, AttributeError) as error:
            raise BadRequest(422, str(error)) from error
        if len(self._channels) + sum([len(each.queues) for each in self._channels]) > _MOST:
            raise BadRequest(422, f"at most {_MOST} channels and queues come at once")
        self._dry = exchange.wanted.word("dry_run", ("no", "yes")) == "yes"
        self._created: list[str] = []
        self._changed: list[str] = []
        self._failed: list[dict[str, str]] = []
        self._same = 0

    def steps(self, session: int, request: object) -> Steps:
        """Create and change one after another; report what the broker refuses, and continue."""
        need((yield Configure(session, request)))
        for channel in self._channels:
            yield from self._channel(session, request, channel)
            yield _PAUSE_S
        for channel in () if self._dry else self._channels:
            yield from self._feeds(session, request, channel)
        for router in self._routers:
            yield from self._router(session, request, router)
        answer = {
            "created": self._created,
            "changed": self._changed,
            "unchanged": self._same,
            "failed": self._failed,
            "dry_run": self._dry,
        }
        return HttpResponse.json(200, answer)

    def _note(self, what: str, reply: Reply, into: list[str]) -> bool:
        if reply.code == RESULT_OK:
            into.append(what)
            return True
        words = "not allowed" if reply.code == 401 else words_of(reply.code)
        self._failed.append({"what": what, "reason": words})
        return False

    def _channel(self, session: int, request: object, channel: DeclaredChannel) -> _Part:
        name, what = channel.name, f"channel {channel.name}"
        reply = yield DescribeChannel(session, request, name)
        body = reply.body
        if isinstance(body, ChannelSnapshot):
            queue = channel.changes.queue
            same = _is_so(channel.changes, body.options, CHANNEL_OPTIONS) and (
                queue is None or _is_so(queue, body.options.queue, QUEUE_OPTIONS)
            )
            if same:
                self._same += 1
            elif self._dry:
                self._changed.append(what)
            else:
                update = UpdateChannel(session, request, name, channel.changes)
                self._note(what, (yield update), self._changed)
        elif self._dry:
            self._created.append(what)
        else:
            create = CreateChannel(session, request, name, channel.changes)
            if not self._note(what, (yield create), self._created):
                return
        for each in channel.queues:
            what = f"queue {name}/{each.queue_id}"
            reply = yield DescribeQueue(session, request, name, each.queue_id)
            found = reply.body
            if isinstance(found, QueueSnapshot):
                if _is_so(each.changes, found.options, QUEUE_OPTIONS):
                    self._same += 1
                elif self._dry:
                    self._changed.append(what)
                else:
                    change = UpdateQueue(session, request, name, each.queue_id, each.changes)
                    self._note(what, (yield change), self._changed)
            elif self._dry:
                self._created.append(what)
            else:
                make = CreateQueue(session, request, name, each.queue_id, each.changes)
                self._note(what, (yield make), self._created)

    def _feeds(self, session: int, request: object, channel: DeclaredChannel) -> _Part:
        """Add the feeds of a channel, after all channels have been created."""
        name = channel.name
        for feed in channel.feeds:
            what = f"feed {name}/{feed.queue_id} to {feed.target}/{feed.target_queue}"
            add = AddFeed(
                session,
                request,
                name,
                feed.queue_id,
                feed.target,
                feed.target_queue,
                None,
                feed.filter_language,
                feed.filter,
            )
            reply = yield add
            if reply.code == _DUPLICATE:
                self._same += 1
            else:
                self._note(what, reply, self._created)

    def _router(self, session: int, request: object, router: DeclaredRouter) -> _Part:
        what = f"router {router.name}"
        reply = yield ListRouters(session, request)
        there = reply.body if isinstance(reply.body, list) else []
        found = next((each for each in there if each.name == router.name), None)
        if found is not None:
            self._same += 1
        elif self._dry:
            self._created.append(what)
        else:
            create = CreateRouter(session, request, router.name, router.method)
            if not self._note(what, (yield create), self._created):
                return
        if router.enabled != (True if found is None else found.enabled):
            if self._dry:
                self._changed.extend([what] if found is not None else [])
            else:
                switch = SetRouterEnabled(session, request, router.name, router.enabled)
                self._note(what, (yield switch), self._changed if found is not None else [])
        reply = yield ListBindings(session, request, router.name)
        known = {each.name for each in reply.body} if isinstance(reply.body, list) else set()
        for binding in router.bindings:
            what = f"binding {router.name}/{binding.name}"
            if binding.name in known:
                self._same += 1
            elif self._dry:
                self._created.append(what)
            else:
                bind = AddBinding(session, request, router.name, binding)
                self._note(what, (yield bind), self._created)


def _is_so(changes: Any, options: Any, declared: tuple[Option, ...]) -> bool:
    """Whether the options already have the values of a table."""
    return all([getattr(changes, o.name) in (None, getattr(options, o.name)) for o in declared])


def _import(_api: Api, exchange: Exchange) -> Handler:
    return Stepping(exchange, _Import(exchange).steps)


DEFINITION_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="exportDefinitions",
        method="GET",
        path="/definitions",
        summary="Channels, queues, feeds and routers as a configuration, in JSON or TOML.",
        begin=_export,
        rights=("see-server", "see-channel", "see-routers"),
        commands=(SeeServer, SurveyChannels, SurveyQueues, ListFeeds, ListRouters, ListBindings),
        answer="Definitions",
        other_kinds=(TOML,),
    ),
    Operation(
        name="importDefinitions",
        method="POST",
        path="/definitions",
        summary="Create and change the given definitions, in JSON or TOML; nothing is removed.",
        begin=_import,
        rights=("configure", "create-channel", "create-queue", "manage-routers"),
        commands=(
            Configure,
            DescribeChannel,
            CreateChannel,
            UpdateChannel,
            DescribeQueue,
            CreateQueue,
            UpdateQueue,
            AddFeed,
            ListRouters,
            CreateRouter,
            SetRouterEnabled,
            ListBindings,
            AddBinding,
        ),
        query=(flag("dry_run", "Only report the changes that would be made."),),
        body="Definitions",
        answer="Imported",
        failures=(422,),
    ),
)
