"""``/routers``: routers, their bindings, and messages for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tmqp.constants import RESULT_OK, TYPE_ROUTER
from tmqp.errors import LocalProtocolError
from tmqp.frames import Frame
from tmqp_server.access.rights import MANAGE_ROUTERS
from tmqp_server.admin.api.manner import read_object
from tmqp_server.admin.api.running import AskOnce, Stepping, Steps, done, need, show, words_of
from tmqp_server.admin.api.table import Api, Operation, word
from tmqp_server.doors.http.contents import sent_headers
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, of_result, problem
from tmqp_server.doors.native.clients import RouterEnvelope
from tmqp_server.engine.commands import (
    AddBinding,
    AskRight,
    Command,
    CreateRouter,
    ListBindings,
    ListRouters,
    Publish,
    RemoveBinding,
    RemoveRouter,
    SetRouterEnabled,
)
from tmqp_server.engine.effects import AnswerRouted, Effect, Reply
from tmqp_server.engine.model.snapshots import RouterSnapshot
from tmqp_server.engine.options import BindingOptions
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.routers import ROUTE_METHODS, binding_of, values_of_binding

__all__ = ["ROUTER_OPERATIONS"]

_NO_ROUTER: Final = "there is no such router"
_METHOD_WORDS: Final = {number: word for word, number in ROUTE_METHODS.items()}
#: Seconds for which a message waits for programs that a router calls.
_PATIENCE_S: Final = 30.0


def _item(each: RouterSnapshot) -> dict[str, object]:
    return {
        "name": each.name,
        "method": _METHOD_WORDS.get(each.method, ""),
        "enabled": each.enabled,
    }


def _find(body: object, name: str) -> RouterSnapshot | None:
    assert isinstance(body, list), "it is a list"
    return next((each for each in body if each.name == name), None)


def _list_routers(_api: Api, exchange: Exchange) -> Handler:
    def shape(body: object) -> object:
        assert isinstance(body, list), "it is a list"
        return {"items": [_item(each) for each in body if isinstance(each, RouterSnapshot)]}

    return AskOnce(exchange, ListRouters, show(shape))


def _get_router(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("router")

    def steps(session: int, request: object) -> Steps:
        found = _find(need((yield ListRouters(session, request))), name)
        if found is None:
            return problem(404, _NO_ROUTER)
        return HttpResponse.json(200, _item(found))

    return Stepping(exchange, steps)


def _put_router(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("router")
    given = read_object(exchange.wanted.body)
    method = given.pop("method", "distribute")
    enabled = given.pop("enabled", True)
    if given:
        raise BadRequest(422, f"there is no member {next(iter(given))[:64]!r}")
    if not isinstance(method, str) or method not in ROUTE_METHODS:
        raise BadRequest(422, f"method must be one of {', '.join(ROUTE_METHODS)}")
    if not isinstance(enabled, bool):
        raise BadRequest(422, "enabled must be true or false")
    only = (exchange.wanted.header(b"if-none-match") or b"").strip() == b"*"

    def steps(session: int, request: object) -> Steps:
        # Creating one that is there is answered like creating one: so it is looked for first, when
        # it is known that the client may.
        need((yield AskRight(session, request, MANAGE_ROUTERS, name)))
        reply = yield ListRouters(session, request)
        found = _find(reply.body, name) if reply.code == RESULT_OK else None
        if found is not None:
            if only:
                return problem(412, "the router already exists")
            if found.method != ROUTE_METHODS[method]:
                return problem(409, "the router exists with another method: remove it first")
        need((yield CreateRouter(session, request, name, ROUTE_METHODS[method])))
        if not enabled or (found is not None and found.enabled != enabled):
            need((yield SetRouterEnabled(session, request, name, enabled)), _NO_ROUTER)
        shown = {"name": name, "method": method, "enabled": enabled}
        return HttpResponse.json(200 if found is not None else 201, shown)

    return Stepping(exchange, steps)


def _patch_router(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("router")
    given = read_object(exchange.wanted.body)
    enabled = given.get("enabled")
    if not isinstance(enabled, bool) or len(given) != 1:
        raise BadRequest(422, "the one member is enabled, which is true or false")
    return AskOnce(
        exchange,
        lambda session, request: SetRouterEnabled(session, request, name, enabled),
        done(),
        _NO_ROUTER,
    )


def _remove_router(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("router")
    return AskOnce(exchange, lambda session, request: RemoveRouter(session, request, name), done())


# --- Bindings ------------------------------------------------------------------------------------


def _list_bindings(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("router")

    def shape(body: object) -> object:
        assert isinstance(body, list), "it is a list"
        found = [values_of_binding(each) for each in body if isinstance(each, BindingOptions)]
        return {"items": found}

    return AskOnce(
        exchange,
        lambda session, request: ListBindings(session, request, name),
        show(shape),
        _NO_ROUTER,
    )


def _put_binding(_api: Api, exchange: Exchange) -> Handler:
    router = exchange.wanted.text("router")
    given = read_object(exchange.wanted.body)
    given["name"] = exchange.wanted.text("binding")
    only = (exchange.wanted.header(b"if-none-match") or b"").strip() == b"*"
    try:
        binding = binding_of(given, "")
    except (ConfigError, ValueError, TypeError) as error:
        raise BadRequest(422, str(error)) from error

    def steps(session: int, request: object) -> Steps:
        # As with routers; who may not see them adds without a look.
        need((yield AskRight(session, request, MANAGE_ROUTERS, router)))
        reply = yield ListBindings(session, request, router)
        there = reply.body if isinstance(reply.body, list) else []
        found = next((each for each in there if each.name == binding.name), None)
        if found is not None:
            if only:
                return problem(412, "the binding already exists")
            if values_of_binding(found) != values_of_binding(binding):
                return problem(409, "another binding with this name exists: remove it first")
        need((yield AddBinding(session, request, router, binding)), _NO_ROUTER)
        return HttpResponse.json(200 if found is not None else 201, values_of_binding(binding))

    return Stepping(exchange, steps)


def _remove_binding(_api: Api, exchange: Exchange) -> Handler:
    router, name = exchange.wanted.text("router"), exchange.wanted.text("binding")
    return AskOnce(
        exchange,
        lambda session, request: RemoveBinding(session, request, router, name),
        done(),
        "there is no such router or binding",
    )


# --- Messages ------------------------------------------------------------------------------------


class _ThroughRouter(Handler):
    """Gives a message to a router."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        request = exchange.wanted
        client = exchange.client
        try:
            self._frame = Frame.build(
                TYPE_ROUTER,
                request.text("router"),
                0,
                request.body,
                message_id=client.new_id(),
                source=client.client_id,
                headers=sent_headers(request),
                high_priority=request.word("priority", ("normal", "high")) == "high",
                pending_acknowledge=True,
            )
        except LocalProtocolError as error:
            raise BadRequest(400, str(error)) from error
        request.body = b""

    def start(self, now: float) -> Sequence[Command]:
        """Publish."""
        client = self.exchange.client
        frame = self._frame
        self.due = now + _PATIENCE_S
        envelope = RouterEnvelope(client.number, frame, client.new_id)
        return [Publish(client.number, self, frame.target, len(frame.raw), envelope)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Report whether the message has reached a receiver."""
        if isinstance(effect, Reply) and effect.code != RESULT_OK:
            words = "no receiver was reached" if effect.code == 404 else words_of(effect.code)
            self.exchange.respond(of_result(effect.code, words))
        elif isinstance(effect, (Reply, AnswerRouted)):
            self.exchange.respond(HttpResponse.json(201, {"id": self._frame.message_id}))
        return ()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Answer without the receivers' answers, which have not arrived in time; they have the
        message.
        """
        self.due = math.inf
        self.exchange.respond(HttpResponse.json(202, {"id": self._frame.message_id}))
        return ()


def _publish(_api: Api, exchange: Exchange) -> Handler:
    return _ThroughRouter(exchange)


_ROUTER: Final = "/routers/{router}"
_BINDING: Final = f"{_ROUTER}/bindings/{{binding}}"

ROUTER_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="listRouters",
        method="GET",
        path="/routers",
        summary="The routers.",
        begin=_list_routers,
        rights=("see-routers",),
        commands=(ListRouters,),
        answer="RouterList",
        cli=("router ls",),
    ),
    Operation(
        name="getRouter",
        method="GET",
        path=_ROUTER,
        summary="A router.",
        begin=_get_router,
        rights=("see-routers",),
        commands=(ListRouters,),
        answer="Router",
        failures=(404,),
        cli=("router info",),
    ),
    Operation(
        name="putRouter",
        method="PUT",
        path=_ROUTER,
        summary="Create a router; an existing one must have this method.",
        begin=_put_router,
        rights=("manage-routers",),
        commands=(AskRight, ListRouters, CreateRouter, SetRouterEnabled),
        body="RouterOptions",
        answer="Router",
        status=201,
        failures=(404, 409, 412, 422),
        cli=("router create",),
    ),
    Operation(
        name="patchRouter",
        method="PATCH",
        path=_ROUTER,
        summary="Enable or disable a router.",
        begin=_patch_router,
        rights=("manage-routers",),
        commands=(SetRouterEnabled,),
        body="RouterChanges",
        status=204,
        failures=(404, 422),
    ),
    Operation(
        name="removeRouter",
        method="DELETE",
        path=_ROUTER,
        summary="Remove a router and its bindings, if it exists.",
        begin=_remove_router,
        rights=("manage-routers",),
        commands=(RemoveRouter,),
        status=204,
        cli=("router rm",),
    ),
    Operation(
        name="listBindings",
        method="GET",
        path=f"{_ROUTER}/bindings",
        summary="The bindings of a router, the highest priority first.",
        begin=_list_bindings,
        rights=("see-routers",),
        commands=(ListBindings,),
        answer="BindingList",
        failures=(404,),
        cli=("router info",),
    ),
    Operation(
        name="putBinding",
        method="PUT",
        path=_BINDING,
        summary="Add a binding; an existing one must agree.",
        begin=_put_binding,
        rights=("manage-routers",),
        commands=(AskRight, ListBindings, AddBinding),
        body="Binding",
        answer="Binding",
        status=201,
        failures=(404, 409, 412, 422, 501),
        cli=("router bind",),
    ),
    Operation(
        name="removeBinding",
        method="DELETE",
        path=_BINDING,
        summary="Remove a binding.",
        begin=_remove_binding,
        rights=("manage-routers",),
        commands=(RemoveBinding,),
        status=204,
        failures=(404,),
        cli=("router unbind",),
    ),
    Operation(
        name="publishToRouter",
        method="POST",
        path=f"{_ROUTER}/messages",
        summary="Publish a message to a router: the body is the payload.",
        begin=_publish,
        rights=("publish",),
        commands=(Publish,),
        query=(word("priority", "Its priority.", "normal", "high"),),
        body="Payload",
        answer="Published",
        status=201,
        failures=(202, 404, 409),
        cli=("pub",),
        waits=True,
    ),
)
