"""The pull requests of a client: which are pending, and which messages belong to them.

A pull's messages come as ordinary queue messages, distinguished by headers that the server appends
to the producer's own (F107).  So the *last* header of a name counts, and only ids of requests that
are pending on this connection count at all.  A producer that writes ``Request-Id`` into its message
cannot imitate a pull: a message from another queue than that of the request is not a result of it,
and a response with a source is another client's (F44).
"""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import HeaderName
from tmqp.errors import LocalProtocolError
from tmqp.events import Event, PullCompleted, PullMessageReceived
from tmqp.frames import Frame

__all__ = ["PendingPulls"]

_REQUEST_ID: Final = HeaderName.REQUEST_ID.value
_NO_CONTENT: Final = HeaderName.NO_CONTENT.value
_INDEX: Final = HeaderName.INDEX.value
_COUNT: Final = HeaderName.COUNT.value
_MAX_DIGITS: Final = 10


@final
class PendingPulls:
    """The pull requests that wait for messages.

    :param most: the largest number of them (``Limits.max_pending_pulls``).
    """

    __slots__ = ("_most", "_places", "_received")

    def __init__(self, most: int) -> None:
        self._most: int = most
        self._received: dict[str, int] = {}
        #: The queue of each request: the channel in lower case (F46), and the id.
        self._places: dict[str, tuple[str, int]] = {}

    def any(self) -> bool:
        """Whether any are pending; otherwise no message needs to be examined."""
        return len(self._received) > 0

    def add(self, request: Frame) -> None:
        """Remember a request that is being sent.

        :raises LocalProtocolError: if it has no id or a pending one, or there are too many.
        """
        request_id = request.message_id
        if not request_id:
            raise LocalProtocolError("a pull request must have a message id (F104)")
        if request_id in self._received:
            raise LocalProtocolError(f"the pull request {request_id!r} is pending already")
        if len(self._received) >= self._most:
            raise LocalProtocolError(
                f"{self._most} pull requests are pending, the limit (max_pending_pulls)"
            )
        self._received[request_id] = 0
        self._places[request_id] = (request.target.lower(), request.content_type)

    def forget(self, request_id: str) -> None:
        """Forget a request, so that its results are treated as ordinary messages."""
        self._received.pop(request_id, None)
        self._places.pop(request_id, None)

    def clear(self) -> None:
        """Forget all."""
        self._received = {}
        self._places = {}

    def message(self, frame: Frame) -> Event | None:
        """Make the event of a queue message that belongs to a pending pull; None for others."""
        request_id = frame.last_header(_REQUEST_ID)
        if request_id is None:
            return None
        received = self._received.get(request_id, -1)
        if received < 0:
            return None
        channel, queue_id = self._places[request_id]
        if frame.content_type != queue_id or frame.target.lower() != channel:
            return None
        reason = frame.last_header(_NO_CONTENT)
        index = frame.last_header(_INDEX)
        if reason is not None and index is None and frame.payload_size == 0:
            self.forget(request_id)
            return PullCompleted(frame, request_id, reason, received)
        self._received[request_id] = received + 1
        count = frame.last_header(_COUNT)
        return PullMessageReceived(frame, request_id, _number(index), _number(count))

    def response(self, frame: Frame) -> Event | None:
        """Make the event of a Response that ends a pending pull (F106, F112); None for others."""
        request_id = frame.message_id
        received = self._received.get(request_id, -1)
        if received < 0 or frame.source:
            return None
        self.forget(request_id)
        return PullCompleted(frame, request_id, "", received)


def _number(text: str | None) -> int:
    """Read a number from a header of the server; 0 if it is missing or invalid."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS:
        return 0
    return int(text)
