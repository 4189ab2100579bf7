"""The options of queues, channels and the broker, with the protocol's defaults.

``table`` has the declared options, and ``values`` the records that are generated from it.
"""

from __future__ import annotations

from tmqp_server.engine.options.options import (
    ASKS_ACKNOWLEDGE,
    ASKS_NOTHING,
    ASKS_RESPONSE,
    DEAD_LETTER,
    DEFAULT_HANDLER,
    DROP_OLDEST,
    KEPT,
    NO_KEYS,
    NOWHERE,
    REFUSE,
    STICKY,
    STRICT,
    TEN,
    TO_CLIENTS,
    TO_QUEUE,
    TO_TAG,
    TO_URL,
    TWO,
    WITH_CONSUMERS,
    WITH_OWNER,
    BindingOptions,
    BrokerOptions,
    ChannelChanges,
    ChannelOptions,
    QueueChanges,
    QueueOptions,
)

__all__ = [
    "ASKS_ACKNOWLEDGE",
    "ASKS_NOTHING",
    "ASKS_RESPONSE",
    "DEAD_LETTER",
    "DEFAULT_HANDLER",
    "DROP_OLDEST",
    "KEPT",
    "NOWHERE",
    "NO_KEYS",
    "REFUSE",
    "STICKY",
    "STRICT",
    "TEN",
    "TO_CLIENTS",
    "TO_QUEUE",
    "TO_TAG",
    "TO_URL",
    "TWO",
    "WITH_CONSUMERS",
    "WITH_OWNER",
    "BindingOptions",
    "BrokerOptions",
    "ChannelChanges",
    "ChannelOptions",
    "QueueChanges",
    "QueueOptions",
]
