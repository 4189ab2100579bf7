"""The client's methods about groups: reading many queues under one name (an extension)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tmqp import models
from tmqp.constants import HeaderName
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_CURSOR,
    HEADER_START,
    HEADER_TIMESTAMP,
    OP_COMMIT_GROUP,
    OP_DROP_GROUP,
    OP_LIST_GROUPS,
    OP_OPEN_GROUP,
    OP_RESET_GROUP,
    START_EARLIEST,
    START_LATEST,
)
from tmqp.models import dump_list, parse_list
from tmqp_client._core.arguments import check_queue_id
from tmqp_client._core.requests import Request
from tmqp_client.operations.reading import Reading, number_text

if TYPE_CHECKING:
    from tmqp.models import CursorInformation, GroupOffsets

__all__ = ["Groups"]


class Groups(Reading):
    """The methods of :class:`tmqp_client.Client` about groups.  A group consists of all cursors
    with one name.

    A group exists as long as one of its cursors does.  A queue with ``retain_for_readers`` keeps
    all messages after its slowest cursor.  Answers omit queues that no longer exist or whose
    ``incarnation`` differs; the other queues are not affected.
    """

    async def open_group(
        self,
        channel_filter: str,
        cursor: str,
        queue_id: int | None = None,
        *,
        start: str = START_EARLIEST,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """Create the cursors of a named reader in many queues; existing cursors keep their
        positions.

        :param channel_filter: ``*``, a name, ``x*``, ``*x`` or ``*x*`` (F53).
        :param queue_id: only queues with this id.
        :param start: begin at the ``earliest`` kept message, or after the ``latest``.
        :param timestamp_ms: a Unix time, instead of ``start``: begin at the first message of that
            time or later.
        :returns: the position in each queue; all positions are on disk.
        :raises OperationFailed: if the server refuses: 482, 503.
        """
        headers = [(HEADER_CURSOR, cursor), *_of_queues(queue_id), *_beginning(start, timestamp_ms)]
        return await self._group(OP_OPEN_GROUP, "open group", channel_filter, headers, timeout_s)

    async def commit_group(
        self,
        cursor: str,
        offsets: Iterable[GroupOffsets | CursorInformation],
        *,
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """Commit the position of a reader in many queues; missing cursors are created.

        A cursor never moves back.  When this returns, all positions are on the server's disk.

        :raises OperationFailed: if the server refuses, without any change: 404 if none of the
            queues exists, 416 for a sequence that does not exist yet, 482, 503.
        """
        payload = _places(offsets)
        headers = [(HEADER_CURSOR, cursor)]
        return await self._group(
            OP_COMMIT_GROUP, "commit group", cursor, headers, timeout_s, payload
        )

    async def list_groups(
        self,
        channel_filter: str = "*",
        cursor: str = "",
        queue_id: int | None = None,
        *,
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """Return the named readers of many queues, with their lag ``behind``.

        :param cursor: only readers with this name.
        :raises OperationFailed: when the server refuses: 482, 503.
        """
        headers = _of_queues(queue_id)
        if cursor:
            headers.append((HEADER_CURSOR, cursor))
        return await self._group(OP_LIST_GROUPS, "list groups", channel_filter, headers, timeout_s)

    async def reset_group(
        self,
        cursor: str,
        offsets: Iterable[GroupOffsets | CursorInformation] = (),
        *,
        channel_filter: str = "*",
        queue_id: int | None = None,
        start: str = "",
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """Move a reader to any position, forward or back, in the queues where it has a cursor.

        The position is either ``offsets``, or in all queues that pass the filter ``start`` or a
        time, as in :meth:`open_group`.  A reader cannot be moved before the earliest kept message:
        the answer has its actual position.

        :raises OperationFailed: if the server refuses, without any change: 404 if the reader has no
            cursor, 416 for a sequence that does not exist yet, 482, 503.
        """
        payload = _places(offsets)
        headers = [(HEADER_CURSOR, cursor)]
        if payload != _places(()):
            if start or timestamp_ms is not None:
                raise LocalProtocolError("either offsets, or start, or timestamp_ms")
            return await self._group(
                OP_RESET_GROUP, "reset group", cursor, headers, timeout_s, payload
            )
        headers += [*_of_queues(queue_id), *_beginning(start, timestamp_ms)]
        return await self._group(OP_RESET_GROUP, "reset group", channel_filter, headers, timeout_s)

    async def drop_group(
        self,
        cursor: str,
        channel_filter: str = "*",
        queue_id: int | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Remove a named reader from all queues that pass the filter.

        :raises OperationFailed: if the server refuses: 404 if no queue has it, 482, 503.
        """
        headers = ((HEADER_CURSOR, cursor), *_of_queues(queue_id))
        request = Request(OP_DROP_GROUP, "drop group", channel_filter, headers)
        await self._session.ask(request, timeout_s)

    async def _group(
        self,
        operation: int,
        word: str,
        target: str,
        headers: list[tuple[str, str]],
        timeout_s: float | None,
        payload: bytes = b"",
    ) -> list[CursorInformation]:
        request = Request(operation, word, target, tuple(headers), payload)
        answer = await self._answer(request, timeout_s)
        most_bytes = max(len(answer), models.CursorInformation.max_bytes)
        return parse_list(models.CursorInformation, answer, max_bytes=most_bytes)


def _of_queues(queue_id: int | None) -> list[tuple[str, str]]:
    if queue_id is None:
        return []
    return [(HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id)))]


def _beginning(start: str, timestamp_ms: int | None) -> list[tuple[str, str]]:
    if timestamp_ms is not None:
        return [(HEADER_TIMESTAMP, number_text(HEADER_TIMESTAMP, timestamp_ms))]
    if start not in (START_EARLIEST, START_LATEST):
        raise LocalProtocolError(
            f"start must be {START_EARLIEST!r} or {START_LATEST!r}, not {start!r}"
        )
    return [(HEADER_START, start)]


def _places(offsets: Iterable[GroupOffsets | CursorInformation]) -> bytes:
    return dump_list(
        models.GroupOffsets(
            channel=each.channel,
            queue=each.queue,
            incarnation=each.incarnation,
            sequence=each.sequence,
        )
        for each in offsets
    )
