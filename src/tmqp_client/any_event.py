"""What an event may be, for programs that tell events apart; nothing of ours needs it at once."""

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

#: What an event may be; :data:`tmqp.models.EVENT_MODELS` tells which one is which.
AnyEvent: TypeAlias = (
    ClientEvent | ChannelEvent | SubscriptionEvent | QueueEvent | MessageEvent | NodeInformation
)
