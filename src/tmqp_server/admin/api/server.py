"""``/server``: the server in numbers, its limits, and its storage."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Final

from tmqp_server.access.rights import MANAGE_SERVER
from tmqp_server.admin.api.running import AskOnce, Telling
from tmqp_server.admin.api.table import Api, body_of
from tmqp_server.admin.permitted import Permitted
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse, problem
from tmqp_server.engine.commands import AskRight, Command, Drain, SeeServer
from tmqp_server.engine.operations.survey import Survey
from tmqp_server.settings.sources import hidden
from tmqp_server.shell.turn import Turn

__all__ = [
    "drain",
    "reload_settings",
    "tell_audit",
    "tell_limits",
    "tell_server",
    "tell_settings",
    "tell_storage",
]

#: For how long the numbers of a survey are what everybody gets.
_SHARED_S: Final = 1.0
_HURRIED: Final = 8
_PAUSE_S: Final = 0.005


def _turn_of(api: Api) -> Turn:
    """The turn of the server, which is there when somebody can ask."""
    turn = api.world.turn
    assert turn is not None, "nobody can ask before there is one"
    return turn


class _Overview(Permitted):
    """Counts everything, in portions."""

    def __init__(self, api: Api, exchange: Exchange) -> None:
        super().__init__(exchange, SeeServer(exchange.client.number, None))
        self._api = api
        self._survey: Survey | None = None
        self._portions = 0

    def permitted(self, now: float) -> None:
        """Begin with the survey."""
        self._survey = _turn_of(self._api).hub.broker.survey()
        self.due = now

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Go on with it, and answer when it is complete."""
        survey = self._survey
        assert survey is not None, "nothing else is waited for"
        self.due = now if self._portions < _HURRIED else now + _PAUSE_S
        self._portions += 1
        if survey.go_on(now):
            self.due = math.inf
            offset_s = self.exchange.client.offset_s
            shown = _overview(self._api, survey, now, offset_s)
            self.exchange.respond(HttpResponse.json(200, shown))
        return ()


def _overview(api: Api, survey: Survey, now: float, offset_s: float) -> dict[str, object]:
    world = api.world
    turn = _turn_of(api)
    levels = survey.levels()
    facts = world.facts()
    problems = world.problems()
    total, counters = survey.total, survey.total.counters
    blocked, waiting = turn.pressure()
    doors: dict[str, dict[str, int]] = {}
    there = turn.open_by_door()
    for name, tally in sorted(turn.tally.doors.items()):
        doors[name] = {
            "connections": there[name],
            "opened": tally.opened,
            "received_bytes": tally.received_bytes,
            "sent_bytes": tally.sent_bytes,
        }
    for name, each in survey.doors.items():
        doors.setdefault(name, {}).update(
            messages_received=each.pushed, messages_delivered=each.delivered
        )
    return {
        "version": world.build["version"],
        "build": world.build["build"],
        "python": world.build["python"],
        "started_at_ms": int(world.started_s * 1_000),
        "now_ms": int((now + offset_s) * 1_000),
        "uptime_s": int(max(now + offset_s - world.started_s, 0.0)),
        "ready": not problems,
        "draining": world.draining,
        "problems": problems,
        "limits_near": [each["name"] for each in _limits(api, levels) if each["near"]],
        "channels": levels["channels"],
        "queues": survey.queues,
        "queues_without_consumers": survey.without,
        "clients": levels["sessions"],
        "connections": world.connections(),
        "connections_blocked": blocked,
        "outbound_waiting_bytes": waiting,
        "messages": {
            "waiting": total.waiting,
            "spilled": total.on_disk,
            "deferred": total.deferred,
            "in_flight": total.unanswered,
            "oldest_age_s": round(total.oldest_age_s, 3),
        },
        "counts": {
            "received": counters.received,
            "sent": counters.sent,
            "deliveries": counters.deliveries,
            "done": counters.done,
            "redelivered": counters.redelivered,
            "expired": counters.expired,
            "dead": counters.dead,
            "dropped": counters.dropped,
            "refused": counters.refused,
            "confirms": survey.confirms,
        },
        "doors": doors,
        "memory_used_bytes": levels["message_bytes"] + levels["state_bytes"],
        "memory_limit_bytes": world.limits.max_total_bytes,
        "process": {
            "cpu_s": facts.cpu_s,
            "resident_bytes": facts.resident_bytes,
            "open_fds": facts.open_fds,
            "max_fds": facts.max_fds,
        },
    }


def _limits(api: Api, levels: Any) -> list[dict[str, Any]]:
    """The limits of the whole server of which it is known how much is used."""
    world = api.world
    limits = world.limits
    used = levels["message_bytes"] + levels["state_bytes"]
    rows = (
        ("max_total_bytes", used, limits.max_total_bytes),
        ("max_unsynced_bytes", levels["unsynced_bytes"], limits.max_unsynced_bytes),
        ("max_sessions", levels["sessions"], limits.max_sessions),
        ("max_channels", levels["channels"], limits.max_channels),
        ("max_connections", world.connections(), world.max_connections),
    )
    return [
        {"name": name, "used": count, "limit": most, "near": most > 0 and count >= 0.85 * most}
        for name, count, most in rows
    ]


def tell_server(api: Api, exchange: Exchange) -> Handler:
    """The server in numbers."""
    return _Overview(api, exchange)


def tell_limits(api: Api, exchange: Exchange) -> Handler:
    """Every limit, and of some how much is used."""

    def answer(_now: float) -> object:
        items = _limits(api, _turn_of(api).hub.broker.surveying.levels())
        known = {each["name"] for each in items}
        for field in dataclasses.fields(api.world.limits):
            if field.name not in known:
                value = getattr(api.world.limits, field.name)
                items.append({"name": field.name, "used": None, "limit": value, "near": False})
        return {"items": items}

    return Telling(exchange, SeeServer(exchange.client.number, None), answer)


def tell_settings(api: Api, exchange: Exchange) -> Handler:
    """The settings that the server has, with stars in the place of secrets."""

    def answer(_now: float) -> object:
        found = [(name, hidden(name, value)) for name, value in api.world.settings()]
        return {"items": [{"name": name, "value": _plain(value)} for name, value in found]}

    return Telling(exchange, SeeServer(exchange.client.number, None), answer)


def _plain(value: object) -> object:
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def tell_storage(api: Api, exchange: Exchange) -> Handler:
    """Whether the storage saves, how large it is, and how long it takes."""

    def answer(_now: float) -> object:
        turn = _turn_of(api)
        facts = api.world.facts()
        saving = turn.saving
        return {
            "stored": saving is not None,
            "saving": api.world.saves(),
            "problem": (saving.failing or None) if saving is not None else None,
            "failures": turn.tally.failures,
            "bytes": facts.storage_bytes,
            "free_bytes": facts.free_bytes,
            "floor_bytes": api.world.floor_bytes,
            "write_us": _shown(turn.tally.write),
            "read_us": _shown(turn.tally.read),
            "batch_messages": _shown(turn.tally.batch),
        }

    return Telling(exchange, SeeServer(exchange.client.number, None), answer)


def tell_audit(api: Api, exchange: Exchange) -> Handler:
    """The last changes that were asked for, the latest first."""
    most = exchange.wanted.count("max", 100, 1, 1_000)

    def answer(_now: float) -> object:
        found = list(api.world.audit)[-most:]
        return {"items": [dict(each) for each in reversed(found)]}

    return Telling(exchange, SeeServer(exchange.client.number, None), answer)


def drain(_api: Api, exchange: Exchange) -> Handler:
    """Have the server take no more, and end if that is wanted."""
    stops = body_of(exchange.wanted, {"stop": bool}).get("stop", False)
    return AskOnce(
        exchange,
        lambda session, request: Drain(session, request, stops),
        lambda _: HttpResponse.json(202, {"draining": True, "stop": stops}),
    )


def reload_settings(api: Api, exchange: Exchange) -> Handler:
    """Have the configuration read again; how that went is in the log and in the metrics."""

    def answer(_body: object) -> HttpResponse:
        if api.world.reload is None:
            return problem(501, "this server was not started from a file that can be read again")
        api.world.reload()
        return HttpResponse.json(202, {"reloads": dict(api.world.reloads)})

    return AskOnce(
        exchange,
        lambda session, request: AskRight(session, request, MANAGE_SERVER),
        answer,
    )


def _shown(histogram: Any) -> dict[str, object]:
    """A histogram: how many observations there are up to each bound."""
    return {
        "bounds": list(histogram.bounds),
        "counts": list(histogram.counts),
        "sum": histogram.total,
    }
