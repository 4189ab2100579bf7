"""Custom routers: your own classes that decide where messages go.

A custom router is a small class that returns the targets of each message::

    class ByCountry(CustomRouter):
        def route(self, message: RoutedMessage) -> list[Target]:
            country = message.header("Country") or "other"
            return [to_queue(f"orders-{country}", 1)]

It must be pure: it gets facts and returns targets, without I/O, clock or randomness, and one object
serves all messages of its name.  It is registered under a name, by the configuration or by an
argument; clients can list it, but not remove it or add bindings.

If it raises, or returns something other than targets, only its message is affected: the publisher
gets 500, and the error is logged.
"""

from __future__ import annotations

from typing import TypeAlias

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands import Envelope
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.options import (
    ASKS_NOTHING,
    TO_CLIENTS,
    TO_QUEUE,
    TO_TAG,
    TO_URL,
    BindingOptions,
)

__all__ = [
    "CustomRouter",
    "RoutedMessage",
    "Target",
    "to_clients",
    "to_queue",
    "to_tag",
    "to_url",
]

#: The target of a message; made by :func:`to_queue` and similar functions.
Target: TypeAlias = BindingOptions


class RoutedMessage:
    """A message as a custom router sees it; read-only."""

    __slots__ = ("_envelope", "router", "sender")

    def __init__(self, router: str, sender: Client, envelope: Envelope) -> None:
        #: The router's name.
        self.router = router
        #: The client that published it.
        self.sender = sender
        self._envelope = envelope

    @property
    def message_id(self) -> str:
        """The message's id."""
        return self._envelope.id_of()

    @property
    def content_type(self) -> int:
        """The message's content type, a number that the publisher chooses, 0..65535."""
        return self._envelope.content_type_of()

    @property
    def payload(self) -> bytes:
        """The payload of the message."""
        return self._envelope.payload_of()

    def header(self, name: str) -> str | None:
        """Return the first header of that name, in any case; None if it is missing (F8)."""
        return self._envelope.header(name)


def to_queue(channel: str, queue_id: int | None = None, interaction: int = ASKS_NOTHING) -> Target:
    """Return a queue as a target, which must exist; without *queue_id*, the queue that the
    message's content type names (F124)."""
    return BindingOptions("", TO_QUEUE, channel, queue_id, 0, interaction, 0)


def to_clients(
    target: str, content_type: int | None = None, interaction: int = ASKS_NOTHING, method: int = 0
) -> Target:
    """Return clients as a target, named as in a direct message: an id, ``@name:NAME`` or
    ``@type:TYPE`` (F125)."""
    return BindingOptions("", TO_CLIENTS, target, content_type, 0, interaction, method)


def to_tag(filter: str, interaction: int = ASKS_NOTHING) -> Target:
    """Return all queues whose tag passes the filter as a target (F126)."""
    return BindingOptions("", TO_TAG, filter, None, 0, interaction, 0)


def to_url(url: str, http_method: int | None = None, interaction: int = ASKS_NOTHING) -> Target:
    """Return an HTTP request to a program as a target; the server's configuration must allow the
    URL."""
    return BindingOptions("", TO_URL, url, http_method, 0, interaction, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class CustomRouter:
    """Decides where messages go; subclass it and override :meth:`route`."""

    def route(self, message: RoutedMessage) -> list[Target]:
        """Return the targets of *message*, each of which gets it; the list may be empty."""
        raise NotImplementedError
