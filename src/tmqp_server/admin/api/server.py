"""``/server``: the server in numbers, its limits, settings, storage and audit; drain and reload."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tmqp_server.access.rights import MANAGE_SERVER
from tmqp_server.admin.api.overview import Overview, turn_of
from tmqp_server.admin.api.running import AskOnce, for_observers, managing
from tmqp_server.admin.api.shapes import histogram_item
from tmqp_server.admin.api.table import Api, body_of
from tmqp_server.admin.limits import limits_near
from tmqp_server.admin.permitted import Permitted
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse, problem
from tmqp_server.engine.commands import Command, Drain, Manage, SeeAudit, SeeServer
from tmqp_server.settings.sources import hidden

__all__ = [
    "drain",
    "reload_settings",
    "tell_audit",
    "tell_limits",
    "tell_server",
    "tell_settings",
    "tell_storage",
]


class _Server(Permitted):
    """Shows the server in numbers, when the count is complete."""

    def __init__(self, api: Api, exchange: Exchange) -> None:
        super().__init__(exchange, SeeServer(exchange.client.number, None))
        self._overviews = api.overviews
        self._overview: Overview | None = None

    def permitted(self, now: float) -> None:
        """Begin to count, unless a count is in progress or recent."""
        self._overview = self._overviews.take(now, self.exchange.client.offset_s)
        self.due = now

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Continue the count, and answer when it is complete."""
        overview = self._overview
        assert overview is not None, "nothing else is waited for"
        self.due = overview.go_on(now)
        if overview.value is not None:
            self.exchange.respond(HttpResponse.json(200, overview.value))
        return ()


def tell_server(api: Api, exchange: Exchange) -> Handler:
    """The server in numbers."""
    return _Server(api, exchange)


def tell_limits(api: Api, exchange: Exchange) -> Handler:
    """Every limit, and how much of it is used where that is known."""

    def answer(_now: float) -> object:
        broker = turn_of(api.world).hub.broker
        items = limits_near(api.world, broker.surveying.levels())
        known = {each["name"] for each in items}
        for field in dataclasses.fields(api.world.limits):
            if field.name not in known:
                value = getattr(api.world.limits, field.name)
                items.append({"name": field.name, "used": None, "limit": value, "near": False})
        reached = broker.surveying.limits_reached()
        for each in items:
            each["reached"] = reached.get(each["name"], 0)
        return {"items": items}

    return for_observers(exchange, answer)


def tell_settings(api: Api, exchange: Exchange) -> Handler:
    """The settings of the server, with asterisks instead of secrets."""

    def answer(_now: float) -> object:
        found = [(name, hidden(name, value)) for name, value in api.world.settings()]
        return {"items": [{"name": name, "value": _plain(value)} for name, value in found]}

    return for_observers(exchange, answer)


def _plain(value: object) -> object:
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def tell_storage(api: Api, exchange: Exchange) -> Handler:
    """Whether the storage saves, its size, and how long its syncs take."""

    def answer(_now: float) -> object:
        turn = turn_of(api.world)
        facts = api.world.facts()
        saving = turn.saving
        syncs = api.world.syncs
        return {
            "stored": saving is not None,
            "saving": api.world.saves(),
            "problem": (saving.failing or None) if saving is not None else None,
            "failures": turn.tally.failures,
            "bytes": facts.storage_bytes,
            "free_bytes": facts.free_bytes,
            "floor_bytes": api.world.floor_bytes,
            "write_us": histogram_item(turn.tally.write),
            "sync_us": None if syncs is None else histogram_item(syncs),
            "read_us": histogram_item(turn.tally.read),
            "batch_messages": histogram_item(turn.tally.batch),
        }

    return for_observers(exchange, answer)


def tell_audit(api: Api, exchange: Exchange) -> Handler:
    """The last changes that clients have requested, the latest first."""
    most = exchange.wanted.count("max", 100, 1, 1_000)

    def answer(_now: float) -> object:
        found = list(api.world.audit)[-most:]
        return {"items": [dict(each) for each in reversed(found)]}

    return for_observers(exchange, answer, SeeAudit)


def drain(_api: Api, exchange: Exchange) -> Handler:
    """Drain the server, and stop it afterwards if the request says so."""
    stops = body_of(exchange.wanted, {"stop": bool}).get("stop", False)
    return AskOnce(
        exchange,
        lambda session, request: Drain(session, request, stops),
        lambda _: HttpResponse.json(202, {"draining": True, "stop": stops}),
    )


def reload_settings(api: Api, exchange: Exchange) -> Handler:
    """Reload the configuration; the log and the metrics have the result."""

    def carry_out() -> HttpResponse:
        if api.world.reload is None:
            return problem(
                501,
                "this server was not started from a configuration file, so it cannot reload one",
            )
        api.world.reload()
        return HttpResponse.json(202, {"reloads": dict(api.world.reloads)})

    manage = Manage(exchange.client.number, None, MANAGE_SERVER, "reload")
    return managing(api, exchange, manage, carry_out)
