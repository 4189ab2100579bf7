"""The client's methods that show the messages of queues without removing any (an extension)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Self

from tmqp.constants import HeaderName
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_FROM,
    HEADER_LIMIT,
    HEADER_MAX_BYTES,
    HEADER_MESSAGE_ID,
    HEADER_STATE,
    OP_BROWSE,
    STATE_DEFERRED,
    STATE_IN_FLIGHT,
    STATE_WAITING,
)
from tmqp_client._core.arguments import Pairs, check_channel, check_queue_id
from tmqp_client._core.requests import Request, filter_headers
from tmqp_client._port import Operations
from tmqp_client.operations.reading import number_text
from tmqp_client.reading import PeekedMessage, peeked_messages

__all__ = ["Browsing", "PeekedMessages"]

_STATES = (STATE_WAITING, STATE_DEFERRED, STATE_IN_FLIGHT)


class Browsing(Operations):
    """The methods of :class:`tmqp_client.Client` that browse queues."""

    def peek(
        self,
        channel: str,
        queue_id: int,
        *,
        states: Iterable[str] = (),
        message_id: str = "",
        filter: str | None = None,
        filter_language: str | None = None,
        first: int = 0,
        limit: int | None = None,
    ) -> PeekedMessages:
        """Return an async iterator over the current messages of a queue; none is removed.

        ::

            async for message in client.peek("orders", 1):
                print(message.sequence, message.state, message.text)

        They are ordered by sequence, and fetched in portions: messages that move meanwhile may be
        missing, and later ones may be included.  The client need not have joined; it needs the
        right ``browse``.  Each step raises ``OperationFailed`` if the server refuses: 404, 401, 400
        for an invalid filter, 503 while it is busy; and ``BlockError`` if the answer is damaged.

        :param states: only messages that are ``waiting``, ``deferred`` or ``in-flight``; all if
            empty.
        :param message_id: only messages with this id.
        :param filter: only messages that this filter accepts, such as ``kind=order; region=eu*``.
            Servers without this feature return all messages.
        :param filter_language: ``headers`` (as above, the default), ``prefix`` (the payload begins
            so), ``sql92`` or ``sql92-converting``, such as ``price > 3 AND kind = 'order'``.
        :param first: the first sequence.
        :param limit: the number of messages in a portion; the server chooses it if None.
        :raises LocalProtocolError: for an unknown state, or a language without a filter.
        """
        wanted = tuple(states)
        for state in wanted:
            if state not in _STATES:
                raise LocalProtocolError(
                    f"a state must be one of {', '.join(_STATES)}, not {state!r}"
                )
        which = list(filter_headers(filter, filter_language))
        if wanted:
            which.append((HEADER_STATE, ",".join(wanted)))
        if message_id:
            which.append((HEADER_MESSAGE_ID, message_id))
        return PeekedMessages(self, channel, queue_id, tuple(which), first, limit)

    async def _browse(
        self,
        channel: str,
        queue_id: int,
        which: Pairs,
        first: int,
        limit: int | None,
    ) -> list[PeekedMessage]:
        """Fetch one portion."""
        most_bytes = self._port.machine.limits.protocol.max_payload_bytes
        headers = [
            (HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),
            (HEADER_FROM, number_text(HEADER_FROM, first)),
            (HEADER_MAX_BYTES, number_text(HEADER_MAX_BYTES, most_bytes)),
            *which,
        ]
        if limit is not None:
            headers.append((HEADER_LIMIT, number_text(HEADER_LIMIT, limit)))
        request = Request(OP_BROWSE, "look into", check_channel(channel), tuple(headers))
        return peeked_messages(await self._answer(request, None))


class PeekedMessages:
    """The messages in a queue, as an async iterator; see ``Client.peek``."""

    # Not a generator, because a loop that is left early would have to close it.

    def __init__(
        self,
        client: Browsing,
        channel: str,
        queue_id: int,
        which: Pairs,
        first: int,
        limit: int | None,
    ) -> None:
        self._client = client
        self._channel = channel
        self._queue_id = queue_id
        self._which = which
        self._first = first
        self._limit = limit
        self._portion: deque[PeekedMessage] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> PeekedMessage:
        if not self._portion:
            self._portion.extend(
                await self._client._browse(
                    self._channel, self._queue_id, self._which, self._first, self._limit
                )
            )
            if not self._portion:
                raise StopAsyncIteration
            self._first = self._portion[-1].sequence + 1
        return self._portion.popleft()
