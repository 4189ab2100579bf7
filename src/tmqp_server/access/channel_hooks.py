"""The hooks that channels name in their options: authenticators and event handlers (F70, F71).

An authenticator is an ``Access`` (``auth.py``) that decides about the channels that name it,
instead of the server-wide one.  An event handler is called for events of the channels that name
it::

    class Audit(ChannelEventHandler):
        async def client_joined(self, event):
            await write_down(event.channel, event.client_id)

Each object is called for one event at a time, in the order of the events in all its channels.  The
server does not wait for it: exceptions are logged, and so are calls that take longer than
``hook_timeout_s``.  When too many events wait, further ones are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, final

from tmqp_server.access.auth import Access, Admission, Answer, Applicant, Identity
from tmqp_server.engine.events import (
    CHANNEL_CREATED,
    CHANNEL_REMOVED,
    CLIENT_JOINED,
    CLIENT_LEFT,
    MESSAGE_PRODUCED,
    QUEUE_CREATED,
    QUEUE_REMOVED,
    QUEUE_UPDATED,
    ChannelFact,
    MessageFact,
    QueueFact,
    SubscriptionFact,
)
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.extensions import ClassSetting, load

__all__ = [
    "EVENT_METHODS",
    "ChannelEventHandler",
    "ChannelHooks",
    "OpenAccess",
    "load_channel_hooks",
]

_T = TypeVar("_T")


class ChannelEventHandler:
    """A handler for events of channels; override the methods that you need.

    The facts are those of the events to which clients may subscribe
    (``tmqp_server.engine.events``).
    """

    async def channel_created(self, event: ChannelFact) -> None:
        """A channel with this event handler was created."""

    async def channel_removed(self, event: ChannelFact) -> None:
        """The channel was removed, after its queues.  There is no ``client_left`` for its
        consumers."""

    async def client_joined(self, event: SubscriptionFact) -> None:
        """A client joined the channel."""

    async def client_left(self, event: SubscriptionFact) -> None:
        """A client left the channel, or its connection ended."""

    async def queue_created(self, event: QueueFact) -> None:
        """A queue was created in the channel."""

    async def queue_updated(self, event: QueueFact) -> None:
        """A queue got new options."""

    async def queue_removed(self, event: QueueFact) -> None:
        """A queue was removed with its messages."""

    async def message_produced(self, event: MessageFact) -> None:
        """A message arrived in a queue of the channel.

        This costs time for each message, but only if the class overrides it.
        """


#: The method that is notified of each event.
EVENT_METHODS: Final[Mapping[int, str]] = {
    CHANNEL_CREATED: "channel_created",
    CHANNEL_REMOVED: "channel_removed",
    CLIENT_JOINED: "client_joined",
    CLIENT_LEFT: "client_left",
    QUEUE_CREATED: "queue_created",
    QUEUE_UPDATED: "queue_updated",
    QUEUE_REMOVED: "queue_removed",
    MESSAGE_PRODUCED: "message_produced",
}


@final
class OpenAccess(Access):
    """Everybody may connect and do everything: the server-wide rule of a server that has none, but
    has authenticators of channels."""

    authenticates = False
    keep_s = float("inf")

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        """Accept every client."""
        return Admission(authenticated=False)

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        """Allow everything."""
        return True


@final
class ChannelHooks:
    """The hooks that channels may name, by name."""

    def __init__(
        self,
        authenticators: Mapping[str, Access],
        event_handlers: Mapping[str, ChannelEventHandler],
    ) -> None:
        self.authenticators = authenticators
        self.event_handlers = event_handlers

    def wanted(self) -> dict[str, int]:
        """The mask of the events that each event handler handles."""
        return {name: _wanted(handler) for name, handler in self.event_handlers.items()}


def _wanted(handler: ChannelEventHandler) -> int:
    mask = 0
    for bit, method in EVENT_METHODS.items():
        if getattr(type(handler), method) is not getattr(ChannelEventHandler, method):
            mask |= bit
    return mask


def load_channel_hooks(
    authenticators: Mapping[str, ClassSetting],
    event_handlers: Mapping[str, ClassSetting],
    given_authenticators: Mapping[str, Access] | None = None,
    given_event_handlers: Mapping[str, ChannelEventHandler] | None = None,
) -> ChannelHooks:
    """The hooks that the configuration names, and the given ones.

    :raises ConfigError: when a class cannot be loaded or a name is taken.
    """
    return ChannelHooks(
        _joined("authenticators", authenticators, given_authenticators, Access),
        _joined("event_handlers", event_handlers, given_event_handlers, ChannelEventHandler),
    )


def _joined(
    key: str,
    settings: Mapping[str, ClassSetting],
    given: Mapping[str, _T] | None,
    kind: type[_T],
) -> dict[str, _T]:
    found = dict(given or {})
    for name, setting in settings.items():
        if name in found:
            raise ConfigError(f"{key}: {name!r} was given as an argument too")
        found[name] = load(setting, kind)
    return found
