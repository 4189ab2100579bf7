"""The client's methods that read the kept messages of queues (an extension)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

import anyio

from tmqp import models
from tmqp.constants import RESULT_REQUESTED_RANGE_NOT_SATISFIABLE, HeaderName
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_CURSOR,
    HEADER_FROM,
    HEADER_INCARNATION,
    HEADER_LIMIT,
    HEADER_MAX_BYTES,
    HEADER_SEQUENCE,
    HEADER_START,
    HEADER_TIMESTAMP,
    HEADER_TO,
    HEADER_WAIT,
    OP_COMMIT_CURSOR,
    OP_DROP_CURSOR,
    OP_LIST_CURSORS,
    OP_OFFSETS,
    OP_READ_INDEX,
    OP_READ_RANGE,
    OP_SPLIT_RANGE,
    START_EARLIEST,
    START_LATEST,
)
from tmqp.models import dump_list, parse_list
from tmqp_client._core.arguments import check_channel, check_queue_id
from tmqp_client._core.requests import Request
from tmqp_client._port import Operations
from tmqp_client.errors import OperationFailed, OutOfRange
from tmqp_client.reading import KeptEntry, KeptMessage, kept_entries, kept_messages

if TYPE_CHECKING:
    from tmqp.models import CursorInformation, KnownOffsets, OffsetsInformation, PartInformation

__all__ = ["KeptMessages", "Reading", "number_text"]


class Reading(Operations):
    """The methods of :class:`tmqp_client.Client` that read kept messages.

    Sequences increase within a queue, with gaps.  With an ``incarnation``, from :meth:`offsets` or
    a cursor, the server answers 409 if the queue was removed and created again.  A server without a
    data directory answers 501; one that does not know these operations answers 400 or not at all.
    """

    async def offsets(
        self,
        channel_filter: str = "*",
        queue_id: int | None = None,
        *,
        cursor: str = "",
        timestamp_ms: int | None = None,
        wait_ms: int = 0,
        known: Iterable[OffsetsInformation] = (),
        timeout_s: float | None = None,
    ) -> list[OffsetsInformation]:
        """Return the available sequences of many queues, in one round trip.

        :param channel_filter: ``*``, a name, ``x*``, ``*x`` or ``*x*`` (F53).
        :param queue_id: only queues with this id.
        :param cursor: include the position of this reader in each queue (``committed``).
        :param timestamp_ms: Unix time: include the first message of that time or later (``at``).
        :param wait_ms: the server may delay the answer for this time (at most
            ``max_read_wait_ms``), until there are messages beyond ``known``, or a queue is created
            or removed.
        :param known: an earlier answer, or a part of it.
        :param timeout_s: by default ``response_timeout_s`` of the limits plus ``wait_ms``.
        :raises OperationFailed: when the server refuses: 482 for too many queues, 503.
        :raises ModelError: when the answer cannot be read.
        """
        headers: list[tuple[str, str]] = []
        payload = b""
        if queue_id is not None:
            headers.append((HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))))
        if cursor:
            headers.append((HEADER_CURSOR, cursor))
        if timestamp_ms is not None:
            headers.append((HEADER_TIMESTAMP, number_text(HEADER_TIMESTAMP, timestamp_ms)))
        if wait_ms:
            headers.append((HEADER_WAIT, number_text(HEADER_WAIT, wait_ms)))
            payload = dump_list([_known(each) for each in known])
            if timeout_s is None:
                timeout_s = self._port.machine.limits.response_timeout_s + wait_ms / 1000
        request = Request(OP_OFFSETS, "list offsets", channel_filter, tuple(headers), payload)
        answer = await self._answer(request, timeout_s)
        most_bytes = max(len(answer), models.OffsetsInformation.max_bytes)
        return parse_list(models.OffsetsInformation, answer, max_bytes=most_bytes)

    async def read_range(
        self,
        channel: str,
        queue_id: int,
        first: int | None = None,
        last: int | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> list[KeptMessage]:
        """Read the kept messages from sequence ``first`` to ``last``, consumed or not, without
        removing them.

        :param first: the earliest if None.
        :param last: included; the latest if None.
        :param limit: the most messages; the server's limits apply as well, so there may be fewer
            than exist: continue after the last one.
        :param max_bytes: the largest answer, unless the first message alone is larger; by default
            the client's limit.
        :raises OutOfRange: when ``first`` is before the earliest kept message, or far after the
            latest.
        :raises OperationFailed: when the server refuses: 404, 409 for another incarnation, 482 for
            a message too large to be answered with, 500 for damage, 503.
        :raises BlockError: when the answer is damaged.
        """
        headers = self._bounded(queue_id, incarnation, first, last, limit, max_bytes)
        return kept_messages(await self._range(OP_READ_RANGE, "read", channel, headers, timeout_s))

    async def read_index(
        self,
        channel: str,
        queue_id: int,
        first: int | None = None,
        last: int | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> list[KeptEntry]:
        """Read the index entries of the messages from ``first`` to ``last``, without the messages.

        An entry has the time, the sizes and the number of deliveries; it takes 56 bytes, whatever
        the size of its message.  Arguments, limits and errors are as in :meth:`read_range`.
        """
        headers = self._bounded(queue_id, incarnation, first, last, limit, max_bytes)
        word = "read the index of"
        return kept_entries(await self._range(OP_READ_INDEX, word, channel, headers, timeout_s))

    def _bounded(
        self,
        queue_id: int,
        incarnation: str,
        first: int | None,
        last: int | None,
        limit: int | None,
        max_bytes: int | None,
    ) -> list[tuple[str, str]]:
        """The headers of a read, with a limit of its answer that this client accepts."""
        most_bytes = self._port.machine.limits.protocol.max_payload_bytes
        most_bytes = most_bytes if max_bytes is None else min(max_bytes, most_bytes)
        return _of_queue(queue_id, incarnation) + _numbers(first, last, limit, most_bytes)

    async def split_range(
        self,
        channel: str,
        queue_id: int,
        first: int | None = None,
        last: int | None = None,
        *,
        max_bytes: int | None = None,
        limit: int | None = None,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> list[PartInformation]:
        """Split the kept messages from ``first`` to ``last`` into parts, without reading them.

        :param first: as in :meth:`read_range`; so are ``last``, ``incarnation`` and the errors.
        :param max_bytes: the largest size of one part, unless its only message is larger; None for
            no limit.
        :param limit: the most messages of one part; None for no limit.
        :returns: consecutive parts; the server has a limit, so continue after the last one if
            ``last`` is not reached.
        """
        headers = _of_queue(queue_id, incarnation)
        headers += _numbers(first, last, limit, max_bytes)
        answer = await self._range(OP_SPLIT_RANGE, "split", channel, headers, timeout_s)
        most_bytes = max(len(answer), models.PartInformation.max_bytes)
        return parse_list(models.PartInformation, answer, max_bytes=most_bytes)

    async def _range(
        self,
        operation: int,
        word: str,
        channel: str,
        headers: list[tuple[str, str]],
        timeout_s: float | None,
    ) -> bytes:
        request = Request(operation, word, check_channel(channel), tuple(headers))
        try:
            return await self._answer(request, timeout_s)
        except OperationFailed as error:
            if error.code != RESULT_REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            raise OutOfRange(error.asked, error.message_id, error.code, error.body) from None

    async def open_cursor(
        self,
        channel: str,
        queue_id: int,
        cursor: str,
        start: str = START_EARLIEST,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> CursorInformation:
        """Create a named reader, at the ``earliest`` kept message or after the ``latest``.

        An existing one keeps its position.  In a queue with ``retain_for_readers``, later messages
        are kept from now on; the first to read follows ``sequence``.

        :raises OperationFailed: when the server refuses: 404, 409, 482, 503.
        """
        if start not in (START_EARLIEST, START_LATEST):
            raise LocalProtocolError(
                f"start must be {START_EARLIEST!r} or {START_LATEST!r}, not {start!r}"
            )
        headers = _of_queue(queue_id, incarnation)
        headers += [(HEADER_CURSOR, cursor), (HEADER_START, start)]
        return await self._move(channel, headers, "open cursor of", timeout_s)

    async def commit_cursor(
        self,
        channel: str,
        queue_id: int,
        cursor: str,
        sequence: int,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> CursorInformation:
        """Commit the position of a reader, which has processed everything up to ``sequence``; a
        missing cursor is created.

        A cursor never moves back.  When this returns, the position is on the server's disk.

        :raises OperationFailed: when the server refuses: 404, 409, 416 for a sequence that does not
            exist yet, 482, 503.
        """
        headers = _of_queue(queue_id, incarnation)
        headers += [
            (HEADER_CURSOR, cursor),
            (HEADER_SEQUENCE, number_text(HEADER_SEQUENCE, sequence)),
        ]
        return await self._move(channel, headers, "commit cursor of", timeout_s)

    async def _move(
        self, channel: str, headers: list[tuple[str, str]], word: str, timeout_s: float | None
    ) -> CursorInformation:
        request = Request(OP_COMMIT_CURSOR, word, check_channel(channel), tuple(headers))
        return models.CursorInformation.from_json(await self._answer(request, timeout_s))

    async def cursors(
        self,
        channel: str,
        queue_id: int,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """Return the named readers of a queue.

        :raises OperationFailed: when the server refuses: 404, 409.
        :raises ModelError: when the answer cannot be read.
        """
        headers = tuple(_of_queue(queue_id, incarnation))
        request = Request(OP_LIST_CURSORS, "list cursors of", check_channel(channel), headers)
        return await self._list(models.CursorInformation, request, timeout_s)

    async def drop_cursor(
        self,
        channel: str,
        queue_id: int,
        cursor: str,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> None:
        """Remove a named reader, and release messages that are kept only for it.

        :raises OperationFailed: when the server refuses: 404 if there is no such queue or cursor,
            409, 503.
        """
        headers = (*_of_queue(queue_id, incarnation), (HEADER_CURSOR, cursor))
        request = Request(OP_DROP_CURSOR, "drop cursor of", check_channel(channel), headers)
        await self._session.ask(request, timeout_s)

    def read_from(
        self,
        channel: str,
        queue_id: int,
        cursor: str,
        *,
        start: str = START_EARLIEST,
        follow: bool = True,
        poll_s: float = 1.0,
        limit: int | None = None,
    ) -> KeptMessages:
        """Read from the position of a named reader, and commit the messages that the loop has
        processed.

        ::

            async for message in client.read_from("orders", 1, "archive"):
                ...

        A portion is committed when the loop takes the next message after it: if the loop ends in
        between, some messages are read again, and none is missed.  Each step raises as
        :meth:`read_range`, :meth:`open_cursor` and :meth:`commit_cursor` do.

        :param start: where a new reader begins, as in :meth:`open_cursor`.
        :param follow: wait for further messages, polling every ``poll_s`` seconds; otherwise end
            when all are read.
        :param limit: the number of messages in a portion.
        """
        return KeptMessages(self, channel, queue_id, cursor, start, follow, poll_s, limit)


class KeptMessages:
    """The kept messages after a cursor, as an async iterator; see ``Client.read_from``."""

    # Not a generator, because a loop that is left early would have to close it.

    def __init__(
        self,
        client: Reading,
        channel: str,
        queue_id: int,
        cursor: str,
        start: str,
        follow: bool,
        poll_s: float,
        limit: int | None,
    ) -> None:
        self._client = client
        self._channel = channel
        self._queue_id = queue_id
        self._cursor = cursor
        self._start = start
        self._follow = follow
        self._poll_s = poll_s
        self._limit = limit
        self._incarnation = ""
        #: The last sequence that was returned, and the last that was committed.
        self._done = -1
        self._committed = -1
        self._portion: deque[KeptMessage] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> KeptMessage:
        while not self._portion:
            if not await self._read():
                if not self._follow:
                    raise StopAsyncIteration
                await anyio.sleep(self._poll_s)
        message = self._portion.popleft()
        self._done = message.sequence
        return message

    async def _read(self) -> bool:
        """Fetch the next portion; False if there is none now."""
        client = self._client
        place = (self._channel, self._queue_id)
        if self._done < 0:
            where = await client.open_cursor(*place, self._cursor, self._start)
            self._incarnation = where.incarnation
            self._done = self._committed = where.sequence
        incarnation = self._incarnation
        if self._done > self._committed:
            done = self._done
            await client.commit_cursor(*place, self._cursor, done, incarnation=incarnation)
            self._committed = done
        first = self._done + 1
        self._portion.extend(
            await client.read_range(*place, first, limit=self._limit, incarnation=incarnation)
        )
        return bool(self._portion)


def _known(offsets: OffsetsInformation) -> KnownOffsets:
    return models.KnownOffsets(
        channel=offsets.channel,
        queue=offsets.queue,
        latest=offsets.latest,
        incarnation=offsets.incarnation,
    )


def _of_queue(queue_id: int, incarnation: str) -> list[tuple[str, str]]:
    headers = [(HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id)))]
    if incarnation:
        headers.append((HEADER_INCARNATION, incarnation))
    return headers


def _numbers(
    first: int | None, last: int | None, limit: int | None, max_bytes: int | None
) -> list[tuple[str, str]]:
    """The headers of a range, without those that are None."""
    given = [(HEADER_FROM, first), (HEADER_TO, last)]
    given += [(HEADER_LIMIT, limit), (HEADER_MAX_BYTES, max_bytes)]
    return [(name, number_text(name, value)) for name, value in given if value is not None]


def number_text(name: str, value: int) -> str:
    """Format a number for a header.

    :raises LocalProtocolError: if it is negative, or does not fit into 63 bits.
    """
    if not 0 <= value < 2**63:
        raise LocalProtocolError(f"{name} is a number 0..2**63-1, got {value!r}")
    return str(value)
