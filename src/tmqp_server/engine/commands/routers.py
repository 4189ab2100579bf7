"""The commands about routers, and the envelope of a message for one (F120-F126)."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.commands.clients import SendDirect
from tmqp_server.engine.commands.messages import Push
from tmqp_server.engine.options import BindingOptions

__all__ = [
    "AddBinding",
    "CreateRouter",
    "Envelope",
    "HttpAnswered",
    "HttpMessage",
    "ListBindings",
    "ListRouters",
    "Publish",
    "RemoveBinding",
    "RemoveRouter",
    "SetRouterEnabled",
]


class HttpMessage:
    """A message as HTTP can carry it: pairs of name and value, and the payload."""

    __slots__ = ("body", "headers")

    def __init__(self, headers: list[tuple[str, str]], body: bytes) -> None:
        self.headers = headers
        self.body = body


@mypyc_attr(allow_interpreted_subclasses=True)
class Envelope:
    """A message for a router, in the forms it may take on its way; made by a door.

    The engine knows neither the wire form of a message nor how a direct binding names clients.
    """

    def id_of(self) -> str:
        """The message's id."""
        raise NotImplementedError

    def content_type_of(self) -> int:
        """The message's content type."""
        raise NotImplementedError

    def payload_of(self) -> bytes:
        """What the message carries."""
        raise NotImplementedError

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case; None when there is none (F8)."""
        raise NotImplementedError

    def as_http(self) -> HttpMessage:
        """The message as a request to a program over HTTP; all headers are valid in HTTP."""
        raise NotImplementedError

    def as_push(self, channel: str, queue_id: int | None, interaction: int) -> Push:
        """A copy for a queue: under a new id, or with the message's id if it requests an answer
        (F124).  *queue_id* None stands for the queue that the message's content type names."""
        raise NotImplementedError

    def as_direct(self, target: str, content_type: int | None, interaction: int) -> SendDirect:
        """The message for the clients that a binding's target names (F125)."""
        raise NotImplementedError


class CreateRouter(SessionCommand):
    """Create a router; an existing one is not changed (F60).  400 for an invalid name, 482."""

    __slots__ = ("request", "router", "method")

    def __init__(self, session: int, request: object, router: str, method: int) -> None:
        super().__init__(session)
        self.request = request
        self.router = router
        self.method = method


class RemoveRouter(SessionCommand):
    """Remove a router with its bindings; also answered 0 if there is no such router (F60)."""

    __slots__ = ("request", "router")

    def __init__(self, session: int, request: object, router: str) -> None:
        super().__init__(session)
        self.request = request
        self.router = router


class ListRouters(SessionCommand):
    """Answered with a list of RouterSnapshot, in the order of creation (F60)."""

    __slots__ = ("request",)

    def __init__(self, session: int, request: object) -> None:
        super().__init__(session)
        self.request = request


class AddBinding(SessionCommand):
    """Add a binding; an existing one of this name is not changed (F61).  404, 400, 482."""

    __slots__ = ("request", "router", "binding")

    def __init__(self, session: int, request: object, router: str, binding: BindingOptions) -> None:
        super().__init__(session)
        self.request = request
        self.router = router
        self.binding = binding


class RemoveBinding(SessionCommand):
    """Remove a binding (F60).  404."""

    __slots__ = ("request", "router", "binding")

    def __init__(self, session: int, request: object, router: str, binding: str) -> None:
        super().__init__(session)
        self.request = request
        self.router = router
        self.binding = binding


class ListBindings(SessionCommand):
    """Answered with a list of BindingOptions, the highest priority first (F60, F122).  404."""

    __slots__ = ("request", "router")

    def __init__(self, session: int, request: object, router: str) -> None:
        super().__init__(session)
        self.request = request
        self.router = router


class SetRouterEnabled(SessionCommand):
    """Enable or disable a router; a disabled one answers as if it did not exist (F123).  404."""

    __slots__ = ("request", "router", "enabled")

    def __init__(self, session: int, request: object, router: str, enabled: bool) -> None:
        super().__init__(session)
        self.request = request
        self.router = router
        self.enabled = enabled


class HttpAnswered(Command):
    """The answer to a CallHttp: ``status`` is HTTP's, ``body`` the body of the answer.

    A failed call has the status that a gateway would send: 504 for a timeout, 502 for everything
    else.
    """

    __slots__ = ("ticket", "status", "body")

    def __init__(self, ticket: int, status: int, body: bytes = b"") -> None:
        self.ticket = ticket
        self.status = status
        self.body = body


@mypyc_attr(acyclic=True)
class Publish(SessionCommand):
    """Send a message to a router (F123).

    Answered 404 if no binding accepted the message, 482 if it is too large, 500 if a custom router
    failed, and 0 if a binding accepted it and none asks its receivers for an answer; otherwise the
    receivers answer.  An HTTP binding has accepted the message when the called program answers with
    success; until then the answer waits.  ``size`` is in bytes.
    """

    __slots__ = ("request", "router", "size", "envelope")

    def __init__(
        self, session: int, request: object, router: str, size: int, envelope: Envelope
    ) -> None:
        super().__init__(session)
        self.request = request
        self.router = router
        self.size = size
        self.envelope = envelope
