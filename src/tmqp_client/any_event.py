"""The union of all event models, in a separate module because only type annotations need it."""

from __future__ import annotations

from typing import TypeAlias

from tmqp.models import (
    ChannelEvent,
    ClientEvent,
    MessageEvent,
    NodeInformation,
    QueueEvent,
    SubscriptionEvent,
)

__all__ = ["AnyEvent"]

#: Any event; :data:`tmqp.models.EVENT_MODELS` has the model of each name.
AnyEvent: TypeAlias = (
    ClientEvent | ChannelEvent | SubscriptionEvent | QueueEvent | MessageEvent | NodeInformation
)
