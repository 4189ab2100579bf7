"""Probes: whether the server is alive, and whether it is ready to serve clients.

A server that is not alive should be restarted; a server that is alive but not ready should keep
running, but get no clients. So whether it is alive depends only on its event loop, and readiness
does not depend on the number of waiting messages or on consumers.
"""

from __future__ import annotations

from tmqp_server.admin.permitted import Permitted
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import JSON, HttpResponse, as_json
from tmqp_server.doors.http.routes import Begin
from tmqp_server.engine.commands import SeeServer

__all__ = ["say_alive", "say_ready", "tell_health"]

_TEXT = b"text/plain; charset=utf-8"


def say_alive(world: AdminWorld) -> Begin:
    """``GET /healthz``: 200 and ``alive``, or 503 if the event loop's timer does not fire."""

    def begin(exchange: Exchange) -> Handler | None:
        exchange.wanted.check_query()
        alive = world.is_alive(exchange.now)
        word = b"alive\n" if alive else b"stuck\n"
        exchange.respond(HttpResponse(200 if alive else 503, word, _TEXT))
        return None

    return begin


def say_ready(world: AdminWorld) -> Begin:
    """``GET /readyz``: 200 and ``ready``, or 503 and ``unready``.  With ``?storage=ignore``, for
    clients without durable messages, a storage that does not save is no problem.

    A server of a group that could serve clients but does not lead answers 503 and ``standby``, so
    that clients are sent to the leader; with ``?role=any`` it is ready as well.
    """

    def begin(exchange: Exchange) -> Handler | None:
        exchange.wanted.check_query("storage", "role")
        storage = exchange.wanted.word("storage", ("required", "ignore")) == "required"
        leads = exchange.wanted.word("role", ("leader", "any")) == "leader"
        problems = world.problems(storage=storage, standby=leads)
        word = b"unready\n" if problems else b"ready\n"
        if problems == ["standby"]:
            word = b"standby\n"
        exchange.respond(HttpResponse(503 if problems else 200, word, _TEXT))
        return None

    return begin


def tell_health(world: AdminWorld) -> Begin:
    """``GET /api/v1/server/health``: the result of the probes, for observers of the server."""

    def begin(exchange: Exchange) -> Handler | None:
        exchange.wanted.check_query()
        return _Health(exchange, SeeServer(exchange.client.number, None), world)

    return begin


class _Health(Permitted):
    """Answers with the result of the probes."""

    def __init__(self, exchange: Exchange, permission: SeeServer, world: AdminWorld) -> None:
        super().__init__(exchange, permission)
        self._world = world

    def permitted(self, now: float) -> None:
        """Answer with JSON."""
        world = self._world
        problems = world.problems()
        saving = None if world.turn is None else world.turn.saving
        answer = {
            "alive": world.is_alive(now),
            "ready": not problems,
            "problems": problems,
            "storage": saving.failing or None if saving is not None else None,
        }
        if world.group is not None:
            answer["role"] = world.group().role
        self.exchange.respond(HttpResponse(200, as_json(answer), JSON))
