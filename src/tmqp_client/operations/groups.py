"""The part of the client that reads many queues under one name (an extension)."""

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
    """What :class:`tmqp_client.Client` can do with groups: the cursors of one name, together.

    A group is there as long as one of its cursors is.  In a queue with ``retain_for_readers`` all
    that is behind a cursor is kept.  A queue that has gone, or is another one than the
    ``incarnation`` says, is missing in an answer and changes nothing for the others.
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
        """Have a named reader begin in many queues at once; where it is already it stays.

        :param channel_filter: ``*``, a name, ``x*``, ``*x`` or ``*x*`` (F53).
        :param queue_id: only queues with this id.
        :param start: at the ``earliest`` that is kept, or behind the ``latest``.
        :param timestamp_ms: Unix time, in place of ``start``: with the first that came then or
            later.
        :returns: where it is in each; all is pinned and safe on the disk.
        :raises OperationFailed: when the server refuses: 482, 503.
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

        :raises OperationFailed: when the server refuses, and has changed nothing: 404 when none of
            the queues exists, 416 for a sequence that was not used yet, 482, 503.
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
        """The named readers of many queues, with their lag ``behind``.

        :param cursor: only those with this name.
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
        """Move a reader to any position, also back, in the queues where it has a cursor.

        Either to ``offsets``, or in all queues that pass the filter to ``start`` or to a time, as
        in :meth:`open_group`.  It cannot be moved before the earliest kept message: the answer has
        its position.

        :raises OperationFailed: when the server refuses, and has changed nothing: 404 when it has
            no cursor, 416 for a sequence that was not used yet, 482, 503.
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
        """Have a named reader forgotten in all queues that pass the filter.

        :raises OperationFailed: when the server refuses: 404 when it is nowhere, 482, 503.
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
