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
    """Bring a message to the client of an id, or to all of a name or type (F113, F114).

    ``who`` is compared exactly.  With ``first_only`` the one that connected first gets it.  Clients
    whose outbound buffer is full are skipped.  When nobody gets it there is a Reply for
    ``request`` (``wire`` if that is None): 404 when nobody fits, 503 when those who do cannot take
    it, 482 when it is too large; whether the sender is told is the door's to know (F115).  With
    ``elsewhere`` it was given to other nodes as well, where the receiver may be: then there is no
    404.  ``size`` is in bytes.  ``asks`` says which answers are awaited under ``message_id``
    (ASKS_ACKNOWLEDGE, ASKS_RESPONSE or both): no others are passed on.
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
    """Bring a response, or the acknowledgement of a direct message, to a client (F116, F117).

    ``kind`` is ASKS_ACKNOWLEDGE or ASKS_RESPONSE, what it is.  Dropped and counted when there is no
    such client, or it does not wait for this answer from this session; never answered itself.
    ``size`` is in bytes.
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
    """Be told of an event from now on, or no longer (F127).

    ``event`` is one bit of ``events.py``.  Events of a channel need ``channel``, a message produced
    needs ``queue_id`` too; others ignore them.  Subscribing again only changes the spelling of the
    channel, which comes back in each ``Inform`` (F131), and the form.  ``specified`` asks for
    events in the specification's form instead of the original's (F129).  Answered 0 whether or not
    there was a subscription; 1 when what the event needs is missing (F128); 482 for too many.
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
    """Answer a request that the door could not make sense of with this code, and words if any.

    The door does not answer it itself: answers keep their order, and are work like any other.
    """

    __slots__ = ("request", "code", "words")

    def __init__(self, session: int, request: object, code: int, words: str = "") -> None:
        super().__init__(session)
        self.request = request
        self.code = code
        self.words = words


@mypyc_attr(acyclic=True)
class SendCustom(SessionCommand):
    """Hand a custom message to the server's own code (F17); the engine takes no notice of it.

    Never answered by the engine: what is said to it is that code's to know.  ``request`` is there
    for whoever refuses it.
    """

    __slots__ = ("request", "wire")

    def __init__(self, session: int, wire: object) -> None:
        super().__init__(session)
        self.request = wire
        self.wire = wire
