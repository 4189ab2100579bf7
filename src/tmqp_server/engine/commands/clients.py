"""The commands for messages between clients, and for subscriptions to events.

Their contents, which go from client to client, are opaque to the engine and leave with the effect
``Forward``.
"""

from __future__ import annotations

from typing import Final

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands.base import SessionCommand

__all__ = [
    "BY_ID",
    "BY_NAME",
    "BY_TYPE",
    "Decline",
    "PassAnswer",
    "SendCustom",
    "SendDirect",
    "SubscribeEvent",
]

#: How a direct message names its receivers (F113).
BY_ID: Final = 0
BY_NAME: Final = 1
BY_TYPE: Final = 2


@mypyc_attr(acyclic=True)
class SendDirect(SessionCommand):
    """Forward a message to the client with an id, or to all clients with a name or type (F113,
    F114).

    ``who`` is compared exactly.  With ``first_only``, only the client that connected first gets it.
    Clients whose outbound buffer is full are skipped.  If no client gets it, there is a Reply for
    ``request`` (``wire`` if that is None): 404 if there is no such client, 503 if none can take it,
    482 if it is too large; the door decides whether to tell the sender (F115).  With ``elsewhere``,
    it was also passed to other nodes, where the receiver may be: then there is no 404.  ``size`` is
    in bytes.  ``asks`` says which answers to ``message_id`` the sender requested (ASKS_ACKNOWLEDGE,
    ASKS_RESPONSE or both); no others are forwarded.
    """

    __slots__ = (
        "by",
        "who",
        "first_only",
        "size",
        "wire",
        "request",
        "message_id",
        "asks",
        "elsewhere",
    )

    def __init__(
        self,
        session: int,
        by: int,
        who: str,
        first_only: bool,
        size: int,
        wire: object,
        request: object = None,
        message_id: str = "",
        asks: int = 0,
    ) -> None:
        super().__init__(session)
        self.by = by
        self.who = who
        self.first_only = first_only
        self.size = size
        self.wire = wire
        self.request = wire if request is None else request
        self.message_id = message_id
        self.asks = asks
        self.elsewhere = False


@mypyc_attr(acyclic=True)
class PassAnswer(SessionCommand):
    """Forward a response, or the acknowledgement of a direct message, to a client (F116, F117).

    ``kind`` is ASKS_ACKNOWLEDGE or ASKS_RESPONSE.  It is dropped and counted if there is no such
    client, or if the client does not wait for this answer from this session; there is never a
    Reply.  ``size`` is in bytes.
    """

    __slots__ = ("client_id", "size", "wire", "message_id", "kind")

    def __init__(
        self, session: int, client_id: str, size: int, wire: object, message_id: str, kind: int
    ) -> None:
        super().__init__(session)
        self.client_id = client_id
        self.size = size
        self.wire = wire
        self.message_id = message_id
        self.kind = kind


@mypyc_attr(acyclic=True)
class SubscribeEvent(SessionCommand):
    """Subscribe to an event, or unsubscribe (F127).

    ``event`` is one bit of ``events.py``.  Events of a channel need ``channel``, a message produced
    needs ``queue_id`` too; others ignore them.  Subscribing again only changes the spelling of the
    channel, which each ``Inform`` returns (F131), and the form.  ``specified`` asks for events in
    the specification's form instead of the original's (F129).  Answered 0 whether or not there was
    a subscription, 1 if the channel or queue that the event needs is missing (F128), 482 for too
    many.
    """

    __slots__ = ("request", "event", "channel", "queue_id", "wanted", "specified")

    def __init__(
        self,
        session: int,
        request: object,
        event: int,
        channel: str = "",
        queue_id: int | None = None,
        wanted: bool = True,
        specified: bool = False,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.event = event
        self.channel = channel
        self.queue_id = queue_id
        self.wanted = wanted
        self.specified = specified


@mypyc_attr(acyclic=True)
class Decline(SessionCommand):
    """Answer a request that the door could not understand with this code, and with ``words`` if
    there are any.

    The door does not answer it directly, so that answers keep their order and count as work.
    """

    __slots__ = ("request", "code", "words")

    def __init__(self, session: int, request: object, code: int, words: str = "") -> None:
        super().__init__(session)
        self.request = request
        self.code = code
        self.words = words


@mypyc_attr(acyclic=True)
class SendCustom(SessionCommand):
    """Pass a custom message to the server's user code (F17); the engine ignores its contents.

    The engine never answers it; the user code may.  ``request`` serves code that refuses it before.
    """

    __slots__ = ("request", "wire")

    def __init__(self, session: int, wire: object) -> None:
        super().__init__(session)
        self.request = wire
        self.wire = wire
