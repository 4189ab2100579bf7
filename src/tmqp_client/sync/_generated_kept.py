"""What a client can do with what is kept, blocking.

Made by ``python -m tools.make_sync``: edit the async side, and run that.
"""

from __future__ import annotations

from collections.abc import Iterable

from tmqp.extensions import START_EARLIEST
from tmqp.models import CursorInformation, GroupOffsets, OffsetsInformation, PartInformation
from tmqp_client.client import Client
from tmqp_client.reading import KeptEntry, KeptMessage
from tmqp_client.sync._blocking import Blocking
from tmqp_client.sync._generated_streams import KeptMessages, PeekedMessages

__all__ = ["Kept"]


class Kept(Blocking[Client]):
    """The blocking form of :class:`tmqp_client.Client`."""

    def open_group(
        self,
        channel_filter: str,
        cursor: str,
        queue_id: int | None = None,
        *,
        start: str = START_EARLIEST,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """As :meth:`tmqp_client.Client.open_group`, blocking."""
        result: list[CursorInformation] = self._call(
            self._wrapped.open_group,
            channel_filter,
            cursor,
            queue_id,
            start=start,
            timestamp_ms=timestamp_ms,
            timeout_s=timeout_s,
        )
        return result

    def commit_group(
        self,
        cursor: str,
        offsets: Iterable[GroupOffsets | CursorInformation],
        *,
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """As :meth:`tmqp_client.Client.commit_group`, blocking."""
        result: list[CursorInformation] = self._call(
            self._wrapped.commit_group, cursor, offsets, timeout_s=timeout_s
        )
        return result

    def list_groups(
        self,
        channel_filter: str = "*",
        cursor: str = "",
        queue_id: int | None = None,
        *,
        timeout_s: float | None = None,
    ) -> list[CursorInformation]:
        """As :meth:`tmqp_client.Client.list_groups`, blocking."""
        result: list[CursorInformation] = self._call(
            self._wrapped.list_groups, channel_filter, cursor, queue_id, timeout_s=timeout_s
        )
        return result

    def reset_group(
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
        """As :meth:`tmqp_client.Client.reset_group`, blocking."""
        result: list[CursorInformation] = self._call(
            self._wrapped.reset_group,
            cursor,
            offsets,
            channel_filter=channel_filter,
            queue_id=queue_id,
            start=start,
            timestamp_ms=timestamp_ms,
            timeout_s=timeout_s,
        )
        return result

    def drop_group(
        self,
        cursor: str,
        channel_filter: str = "*",
        queue_id: int | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """As :meth:`tmqp_client.Client.drop_group`, blocking."""
        self._call(self._wrapped.drop_group, cursor, channel_filter, queue_id, timeout_s=timeout_s)

    def offsets(
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
        """As :meth:`tmqp_client.Client.offsets`, blocking."""
        result: list[OffsetsInformation] = self._call(
            self._wrapped.offsets,
            channel_filter,
            queue_id,
            cursor=cursor,
            timestamp_ms=timestamp_ms,
            wait_ms=wait_ms,
            known=known,
            timeout_s=timeout_s,
        )
        return result

    def read_range(
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
        """As :meth:`tmqp_client.Client.read_range`, blocking."""
        result: list[KeptMessage] = self._call(
            self._wrapped.read_range,
            channel,
            queue_id,
            first,
            last,
            limit,
            max_bytes,
            incarnation=incarnation,
            timeout_s=timeout_s,
        )
        return result

    def read_index(
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
        """As :meth:`tmqp_client.Client.read_index`, blocking."""
        result: list[KeptEntry] = self._call(
            self._wrapped.read_index,
            channel,
            queue_id,
            first,
            last,
            limit,
            max_bytes,
            incarnation=incarnation,
            timeout_s=timeout_s,
        )
        return result

    def split_range(
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
        """As :meth:`tmqp_client.Client.split_range`, blocking."""
        result: list[PartInformation] = self._call(
            self._wrapped.split_range,
            channel,
            queue_id,
            first,
            last,
            max_bytes=max_bytes,
            limit=limit,
            incarnation=incarnation,
            timeout_s=timeout_s,
        )
        return result

    def open_cursor(
        self,
        channel: str,
        queue_id: int,
        cursor: str,
        start: str = START_EARLIEST,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> CursorInformation:
        """As :meth:`tmqp_client.Client.open_cursor`, blocking."""
        result: CursorInformation = self._call(
            self._wrapped.open_cursor,
            channel,
            queue_id,
            cursor,
            start,
            incarnation=incarnation,
            timeout_s=timeout_s,
        )
        return result

    def commit_cursor(
        self,
        channel: str,
        queue_id: int,
        cursor: str,
        sequence: int,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> CursorInformation:
        """As :meth:`tmqp_client.Client.commit_cursor`, blocking."""
        result: CursorInformation = self._call(
            self._wrapped.commit_cursor,
            channel,
            queue_id,
            cursor,
            sequence,
            incarnation=incarnation,
            timeout_s=timeout_s,
        )
        return result

    def cursors(
        self, channel: str, queue_id: int, *, incarnation: str = "", timeout_s: float | None = None
    ) -> list[CursorInformation]:
        """As :meth:`tmqp_client.Client.cursors`, blocking."""
        result: list[CursorInformation] = self._call(
            self._wrapped.cursors, channel, queue_id, incarnation=incarnation, timeout_s=timeout_s
        )
        return result

    def drop_cursor(
        self,
        channel: str,
        queue_id: int,
        cursor: str,
        *,
        incarnation: str = "",
        timeout_s: float | None = None,
    ) -> None:
        """As :meth:`tmqp_client.Client.drop_cursor`, blocking."""
        self._call(
            self._wrapped.drop_cursor,
            channel,
            queue_id,
            cursor,
            incarnation=incarnation,
            timeout_s=timeout_s,
        )

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
        """As :meth:`tmqp_client.Client.read_from`, blocking."""
        result: KeptMessages = self._call(
            self._wrapped.read_from,
            channel,
            queue_id,
            cursor,
            start=start,
            follow=follow,
            poll_s=poll_s,
            limit=limit,
        )
        return result

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
        """As :meth:`tmqp_client.Client.peek`, blocking."""
        result: PeekedMessages = self._call(
            self._wrapped.peek,
            channel,
            queue_id,
            states=states,
            message_id=message_id,
            filter=filter,
            filter_language=filter_language,
            first=first,
            limit=limit,
        )
        return result
