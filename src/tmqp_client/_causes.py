"""What a result code means for a given request, in words for people."""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_UNACCEPTABLE,
    RESULT_UNAUTHORIZED,
)

__all__ = ["cause"]

_NO_CHANNEL: Final = "there is no such channel"
_NO_QUEUE: Final = "there is no such channel or queue"
_NO_HANDLER: Final = (
    "the server has no delivery handler, event handler or authenticator of that name, the channel"
    " does not allow this queue, or a durable queue needs a data directory (tmqp-server --data DIR)"
)
_FIXED: Final = (
    f"{_NO_HANDLER}; or the request changes its lifetime, which is fixed when a channel is created"
)
_CACHED: Final = (
    f"{_NO_HANDLER}; or it cannot become a cache queue while it has messages that are on disk only"
)
_EXCLUDED: Final = (
    "an option has no such value, or excludes another: ephemeral and temporary channels exclude the"
    " options that need the disk, and dead letters need a queue for them (dead_letter in the"
    " server's configuration)"
)
_NO_ROUTER: Final = "there is no such router"
#: By the code and the words that what was asked begins with; the first that fits counts.
_CAUSES: Final[tuple[tuple[int, str, str], ...]] = (
    (RESULT_NOT_FOUND, "remove channel", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "look at channel", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "update channel", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "join channel", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "leave channel", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "list consumers of", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "list queues of", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "create queue", _NO_CHANNEL),
    (RESULT_NOT_FOUND, "look at queue", _NO_QUEUE),
    (RESULT_NOT_FOUND, "update queue", _NO_QUEUE),
    (RESULT_NOT_FOUND, "clear queue", _NO_QUEUE),
    (RESULT_NOT_FOUND, "remove queue", _NO_QUEUE),
    (RESULT_NOT_FOUND, "push to", _NO_QUEUE),
    (
        RESULT_NOT_FOUND,
        "apply batch",
        "a queue is missing, or a message is no longer in flight to this client",
    ),
    (RESULT_NOT_FOUND, "remove router", _NO_ROUTER),
    (RESULT_NOT_FOUND, "list bindings of", _NO_ROUTER),
    (RESULT_NOT_FOUND, "request to", "no client with that id, name or type is connected"),
    (RESULT_NOT_FOUND, "direct message to", "no client with that id, name or type is connected"),
    (RESULT_UNACCEPTABLE, "apply batch", "a queue's delivery handler refuses a message of it"),
    (RESULT_UNACCEPTABLE, "create queue", _NO_HANDLER),
    (RESULT_UNACCEPTABLE, "update queue", _CACHED),
    (RESULT_UNACCEPTABLE, "create channel", _NO_HANDLER),
    (RESULT_UNACCEPTABLE, "update channel", _FIXED),
    (RESULT_BAD_REQUEST, "create queue", _EXCLUDED),
    (RESULT_BAD_REQUEST, "update queue", _EXCLUDED),
    (RESULT_BAD_REQUEST, "create channel", _EXCLUDED),
    (RESULT_BAD_REQUEST, "update channel", _EXCLUDED),
    (RESULT_UNAUTHORIZED, "", "this client has no right to do that"),
    (RESULT_LIMIT_EXCEEDED, "", "a limit of the server, the channel or the queue is reached"),
    (RESULT_NOT_IMPLEMENTED, "", "this server does not offer that, or is not set up for it"),
    (
        RESULT_BUSY,
        "",
        "the server's memory is full, its storage cannot save or read, or it drains; try later",
    ),
)


def cause(asked: str, code: int) -> str:
    """Return the likely reason for a result code; empty if the code alone does not tell it.

    :param asked: the request in words, such as ``remove channel 'orders'``.
    :param code: the result code (F18).
    """
    for known, beginning, words in _CAUSES:
        if code == known and asked.startswith(beginning):
            return words
    return ""
