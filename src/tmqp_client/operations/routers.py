"""The client's methods that manage routers and publish to them (F60, F120-F123)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmqp import models
from tmqp.constants import (
    OP_ADD_BINDING,
    OP_CREATE_ROUTER,
    OP_LIST_BINDINGS,
    OP_LIST_ROUTERS,
    OP_REMOVE_BINDING,
    OP_REMOVE_ROUTER,
    HeaderName,
    RouteMethod,
)
from tmqp.extensions import HEADER_ROUTER_ENABLED, OP_SET_ROUTER_ENABLED
from tmqp_client._core.arguments import Headers, Payload, check_channel, payload_bytes
from tmqp_client._core.letters import RouterRequest
from tmqp_client._core.pending import Kind
from tmqp_client._core.requests import Request
from tmqp_client._port import Operations
from tmqp_client.direct import Response
from tmqp_client.parts import with_parts

if TYPE_CHECKING:
    from tmqp.models import BindingInformation, RouterInformation

__all__ = ["Routers"]


class Routers(Operations):
    """The methods of :class:`tmqp_client.Client` about routers."""

    async def create_router(
        self,
        name: str,
        method: RouteMethod = RouteMethod.DISTRIBUTE,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Create a router; an existing one is not changed, even if its method differs (F60).

        :raises OperationFailed: when the server refuses: 400, 482.
        """
        headers = ((HeaderName.ROUTE_METHOD.value, str(int(method))),)
        request = Request(OP_CREATE_ROUTER, "create router", check_channel(name), headers)
        await self._session.ask(request, timeout_s)

    async def remove_router(self, name: str, *, timeout_s: float | None = None) -> None:
        """Remove a router with its bindings, if it exists."""
        request = Request(OP_REMOVE_ROUTER, "remove router", check_channel(name))
        await self._session.ask(request, timeout_s)

    async def set_router_enabled(
        self, name: str, enabled: bool, *, timeout_s: float | None = None
    ) -> None:
        """Enable a router, or disable it: a disabled router answers as if it did not exist (an
        extension).

        :raises OperationFailed: with 404 if the router does not exist; with 400 from a server that
            does not know the operation.
        """
        headers = ((HEADER_ROUTER_ENABLED, "1" if enabled else "0"),)
        request = Request(
            OP_SET_ROUTER_ENABLED, "enable or disable router", check_channel(name), headers
        )
        await self._session.ask(request, timeout_s)

    async def routers(self, *, timeout_s: float | None = None) -> list[RouterInformation]:
        """Return all routers.

        :raises ModelError: when the answer cannot be read.
        """
        return await self._list(
            models.RouterInformation, Request(OP_LIST_ROUTERS, "list routers", ""), timeout_s
        )

    async def add_binding(
        self, router: str, binding: BindingInformation, *, timeout_s: float | None = None
    ) -> None:
        """Add a binding; an existing one is not changed (F61).

        :raises OperationFailed: when the server refuses: 404 if there is no such router, 401 for a
            custom router or a URL that is not allowed, 400, 482, 501 if HTTP bindings are off.
        """
        request = Request(
            OP_ADD_BINDING, "add binding to", check_channel(router), (), binding.to_json()
        )
        await self._session.ask(request, timeout_s)

    async def remove_binding(
        self, router: str, binding: str, *, timeout_s: float | None = None
    ) -> None:
        """Remove the binding with this name.

        :raises OperationFailed: with 404 when it does not exist.
        """
        headers = ((HeaderName.BINDING_NAME.value, binding),)
        request = Request(OP_REMOVE_BINDING, "remove binding of", check_channel(router), headers)
        await self._session.ask(request, timeout_s)

    async def bindings(
        self, router: str, *, timeout_s: float | None = None
    ) -> list[BindingInformation]:
        """Return the bindings of a router, the highest priority first (F122).

        :raises OperationFailed: with 404 when there is no such router.
        :raises ModelError: when the answer cannot be read.
        """
        request = Request(OP_LIST_BINDINGS, "list bindings of", check_channel(router))
        return await self._list(models.BindingInformation, request, timeout_s)

    async def publish(
        self,
        router: str,
        payload: Payload,
        *,
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
        wait: bool = True,
        timeout_s: float | None = None,
        nowait: bool = False,
    ) -> str:
        """Publish a message to a router; return its id (F123).

        :param content_type: any number; the queue, if a queue binding does not name one.
        :param wait: return after the acknowledgement: from the router when the message has reached
            a receiver, or from a receiver if a binding requests it.
        :param nowait: raise :class:`WouldBlock` if it cannot be queued immediately.
        :return: its id; empty if it was dropped (``when_full``).
        :raises NegativeAcknowledge: if it reached no receiver (``no-consumers``), or was refused.
        """
        kind = Kind.DIRECT if wait else Kind.OPERATION
        request = RouterRequest(
            kind,
            router,
            content_type,
            payload_bytes(payload),
            with_parts(payload, headers),
            high_priority,
        )
        return await self._session.deliver(request, timeout_s, wait=wait, nowait=nowait)

    async def request_router(
        self,
        router: str,
        payload: Payload,
        timeout_s: float | None = None,
        *,
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
    ) -> Response:
        """Publish a message to a router and return the response (F123).

        The response comes from a receiver if a binding requests one (``source`` is the receiver),
        and otherwise from the router, without a payload.

        :raises OperationFailed: with 404 when it reached no receiver.
        """
        request = RouterRequest(
            Kind.REQUEST,
            router,
            content_type,
            payload_bytes(payload),
            with_parts(payload, headers),
            high_priority,
        )
        answer = (await self._session.ask(request, timeout_s)).answer
        assert answer is not None, "a request is settled by a response"
        return Response(answer.content_type, answer.payload, answer.source)
