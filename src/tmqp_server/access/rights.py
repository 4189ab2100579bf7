"""The rights: the name of everything that a client may be allowed, and the kind of its subject.

A right is checked with a *subject*, the name of its object, and in a few cases with the id of a
queue.  This module has only the names: ``needs.py`` says which command needs which right, and
``auth.py`` who has it.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANSWER",
    "BROWSE",
    "CANCEL",
    "CELLS_READ",
    "CELLS_WRITE",
    "CLEAR_MESSAGES",
    "CONFIGURE",
    "CREATE_CHANNEL",
    "CREATE_QUEUE",
    "CUSTOM",
    "DIRECT",
    "FEED",
    "JOIN",
    "MANAGE_CLIENTS",
    "MANAGE_ROUTERS",
    "MANAGE_SERVER",
    "OF_APPLICATIONS",
    "OF_CHANNELS",
    "OF_CLIENTS",
    "OF_NOTHING",
    "OF_ROUTERS",
    "OF_SPACES",
    "PUBLISH",
    "PULL",
    "PUSH",
    "REMOVE_CHANNEL",
    "REMOVE_QUEUE",
    "RIGHTS",
    "SEE_AUDIT",
    "SEE_CHANNEL",
    "SEE_CLIENTS",
    "SEE_CONSUMERS",
    "SEE_METRICS",
    "SEE_NODES",
    "SEE_ROUTERS",
    "SEE_SERVER",
    "SUBSCRIBE",
    "TRANSACT",
    "UPDATE_CHANNEL",
    "UPDATE_QUEUE",
]

JOIN: Final = "join"
PUSH: Final = "push"
PULL: Final = "pull"
BROWSE: Final = "browse"
CANCEL: Final = "cancel"
CREATE_CHANNEL: Final = "create-channel"
UPDATE_CHANNEL: Final = "update-channel"
REMOVE_CHANNEL: Final = "remove-channel"
CREATE_QUEUE: Final = "create-queue"
UPDATE_QUEUE: Final = "update-queue"
REMOVE_QUEUE: Final = "remove-queue"
CLEAR_MESSAGES: Final = "clear-messages"
FEED: Final = "feed"
SEE_CHANNEL: Final = "see-channel"
SEE_CONSUMERS: Final = "see-consumers"
SUBSCRIBE: Final = "subscribe"
DIRECT: Final = "direct"
ANSWER: Final = "answer"
PUBLISH: Final = "publish"
MANAGE_ROUTERS: Final = "manage-routers"
SEE_ROUTERS: Final = "see-routers"
SEE_CLIENTS: Final = "see-clients"
MANAGE_CLIENTS: Final = "manage-clients"
SEE_NODES: Final = "see-nodes"
SEE_METRICS: Final = "see-metrics"
SEE_SERVER: Final = "see-server"
MANAGE_SERVER: Final = "manage-server"
SEE_AUDIT: Final = "see-audit"
TRANSACT: Final = "transact"
CUSTOM: Final = "custom"
CONFIGURE: Final = "configure"
CELLS_READ: Final = "cells-read"
CELLS_WRITE: Final = "cells-write"

#: The kinds of subjects: what a right's subject names.
OF_APPLICATIONS: Final = "applications"
OF_CHANNELS: Final = "channels"
OF_CLIENTS: Final = "clients"
OF_ROUTERS: Final = "routers"
OF_SPACES: Final = "spaces"
OF_NOTHING: Final = ""

#: Every right, and the kind of its subject.
RIGHTS: Final[dict[str, str]] = {
    JOIN: OF_CHANNELS,
    PUSH: OF_CHANNELS,
    PULL: OF_CHANNELS,
    BROWSE: OF_CHANNELS,
    CANCEL: OF_CHANNELS,
    CREATE_CHANNEL: OF_CHANNELS,
    UPDATE_CHANNEL: OF_CHANNELS,
    REMOVE_CHANNEL: OF_CHANNELS,
    CREATE_QUEUE: OF_CHANNELS,
    UPDATE_QUEUE: OF_CHANNELS,
    REMOVE_QUEUE: OF_CHANNELS,
    CLEAR_MESSAGES: OF_CHANNELS,
    FEED: OF_CHANNELS,
    SEE_CHANNEL: OF_CHANNELS,
    SEE_CONSUMERS: OF_CHANNELS,
    SUBSCRIBE: OF_CHANNELS,
    DIRECT: OF_CLIENTS,
    ANSWER: OF_CLIENTS,
    PUBLISH: OF_ROUTERS,
    MANAGE_ROUTERS: OF_ROUTERS,
    SEE_ROUTERS: OF_ROUTERS,
    SEE_CLIENTS: OF_NOTHING,
    MANAGE_CLIENTS: OF_NOTHING,
    SEE_NODES: OF_NOTHING,
    SEE_METRICS: OF_NOTHING,
    SEE_SERVER: OF_NOTHING,
    MANAGE_SERVER: OF_NOTHING,
    SEE_AUDIT: OF_NOTHING,
    TRANSACT: OF_APPLICATIONS,
    CUSTOM: OF_NOTHING,
    CONFIGURE: OF_NOTHING,
    CELLS_READ: OF_SPACES,
    CELLS_WRITE: OF_SPACES,
}
