"""Streams of the blocking client.

Made by ``python -m tools.make_sync``: edit the async side, and run that.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tmqp.events import MessageReceived
from tmqp.models import CellInformation
from tmqp_client._core.arguments import Payload
from tmqp_client.any_event import AnyEvent
from tmqp_client.connection_events import ConnectionEvent
from tmqp_client.connection_events import ConnectionEvents as AsyncConnectionEvents
from tmqp_client.custom import CustomMessage as AsyncCustomMessage
from tmqp_client.custom import CustomMessages as AsyncCustomMessages
from tmqp_client.events import Events as AsyncEvents
from tmqp_client.operations.browsing import PeekedMessages as AsyncPeekedMessages
from tmqp_client.operations.cells import CellContents
from tmqp_client.operations.cells import Cells as AsyncCells
from tmqp_client.operations.cells import ListedCells as AsyncListedCells
from tmqp_client.operations.reading import KeptMessages as AsyncKeptMessages
from tmqp_client.reading import KeptMessage, PeekedMessage
from tmqp_client.sync._blocking import Blocking
from tmqp_client.unclaimed import Unclaimed as AsyncUnclaimed

__all__ = [
    "Cells",
    "ConnectionEvents",
    "CustomMessage",
    "CustomMessages",
    "Events",
    "KeptMessages",
    "ListedCells",
    "PeekedMessages",
    "Unclaimed",
]


class CustomMessage(Blocking[AsyncCustomMessage]):
    """The blocking form of :class:`tmqp_client.CustomMessage`."""

    @property
    def content_type(self) -> int:
        """As :attr:`tmqp_client.CustomMessage.content_type`."""
        return self._wrapped.content_type

    @property
    def message_id(self) -> str:
        """As :attr:`tmqp_client.CustomMessage.message_id`."""
        return self._wrapped.message_id

    @property
    def payload(self) -> bytes:
        """As :attr:`tmqp_client.CustomMessage.payload`."""
        return self._wrapped.payload

    @property
    def text(self) -> str:
        """As :attr:`tmqp_client.CustomMessage.text`."""
        return self._wrapped.text

    @property
    def parts(self) -> list[bytes]:
        """As :attr:`tmqp_client.CustomMessage.parts`."""
        return self._wrapped.parts

    @property
    def headers(self) -> list[tuple[str, str]]:
        """As :attr:`tmqp_client.CustomMessage.headers`."""
        return self._wrapped.headers

    def header(self, name: str) -> str | None:
        """As :meth:`tmqp_client.CustomMessage.header`."""
        return self._wrapped.header(name)


class CustomMessages(Blocking[AsyncCustomMessages]):
    """The blocking form of :class:`tmqp_client.CustomMessages`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> CustomMessage:
        result: CustomMessage = self._next()
        return result

    def __enter__(self) -> Self:
        self._loop.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call(self._wrapped.__aexit__, exc_type, exc, traceback)

    def aclose(self) -> None:
        """As :meth:`tmqp_client.CustomMessages.aclose`, blocking."""
        self._call(self._wrapped.aclose)


class Events(Blocking[AsyncEvents]):
    """The blocking form of :class:`tmqp_client.Events`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AnyEvent:
        result: AnyEvent = self._next()
        return result

    def __enter__(self) -> Self:
        self._loop.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call(self._wrapped.__aexit__, exc_type, exc, traceback)

    def aclose(self) -> None:
        """As :meth:`tmqp_client.Events.aclose`, blocking."""
        self._call(self._wrapped.aclose)


class Unclaimed(Blocking[AsyncUnclaimed]):
    """The blocking form of :class:`tmqp_client.Unclaimed`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MessageReceived:
        result: MessageReceived = self._next()
        return result


class ConnectionEvents(Blocking[AsyncConnectionEvents]):
    """The blocking form of :class:`tmqp_client.ConnectionEvents`."""

    def close(self) -> None:
        """As :meth:`tmqp_client.ConnectionEvents.close`, blocking."""
        self._call(self._wrapped.close)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConnectionEvent:
        result: ConnectionEvent = self._next()
        return result

    def __enter__(self) -> Self:
        self._loop.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call(self._wrapped.__aexit__, exc_type, exc, traceback)


class KeptMessages(Blocking[AsyncKeptMessages]):
    """The blocking form of :class:`tmqp_client.KeptMessages`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> KeptMessage:
        result: KeptMessage = self._next()
        return result


class PeekedMessages(Blocking[AsyncPeekedMessages]):
    """The blocking form of :class:`tmqp_client.PeekedMessages`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> PeekedMessage:
        result: PeekedMessage = self._next()
        return result


class Cells(Blocking[AsyncCells]):
    """The blocking form of :class:`tmqp_client.Cells`."""

    def make_counter(
        self,
        space: str,
        key: str | bytes,
        count: int = 0,
        *,
        ttl_s: float,
        timeout_s: float | None = None,
    ) -> bool:
        """As :meth:`tmqp_client.Cells.make_counter`, blocking."""
        result: bool = self._call(
            self._wrapped.make_counter, space, key, count, ttl_s=ttl_s, timeout_s=timeout_s
        )
        return result

    def put(
        self,
        space: str,
        key: str | bytes,
        value: Payload,
        *,
        ttl_s: float,
        timeout_s: float | None = None,
    ) -> None:
        """As :meth:`tmqp_client.Cells.put`, blocking."""
        self._call(self._wrapped.put, space, key, value, ttl_s=ttl_s, timeout_s=timeout_s)

    def read(
        self, space: str, key: str | bytes, *, timeout_s: float | None = None
    ) -> CellContents | None:
        """As :meth:`tmqp_client.Cells.read`, blocking."""
        result: CellContents | None = self._call(
            self._wrapped.read, space, key, timeout_s=timeout_s
        )
        return result

    def describe(
        self, space: str, key: str | bytes, *, timeout_s: float | None = None
    ) -> CellInformation | None:
        """As :meth:`tmqp_client.Cells.describe`, blocking."""
        result: CellInformation | None = self._call(
            self._wrapped.describe, space, key, timeout_s=timeout_s
        )
        return result

    def listed(self, space: str, *, limit: int | None = None) -> ListedCells:
        """As :meth:`tmqp_client.Cells.listed`, blocking."""
        result: ListedCells = self._call(self._wrapped.listed, space, limit=limit)
        return result

    def subtract(
        self,
        space: str,
        key: str | bytes,
        amount: int = 1,
        *,
        initial: int | None = None,
        ttl_s: float | None = None,
        timeout_s: float | None = None,
    ) -> int | None:
        """As :meth:`tmqp_client.Cells.subtract`, blocking."""
        result: int | None = self._call(
            self._wrapped.subtract,
            space,
            key,
            amount,
            initial=initial,
            ttl_s=ttl_s,
            timeout_s=timeout_s,
        )
        return result

    def add(
        self,
        space: str,
        key: str | bytes,
        amount: int = 1,
        *,
        initial: int | None = None,
        ttl_s: float | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """As :meth:`tmqp_client.Cells.add`, blocking."""
        result: int = self._call(
            self._wrapped.add, space, key, amount, initial=initial, ttl_s=ttl_s, timeout_s=timeout_s
        )
        return result

    def set_count(
        self, space: str, key: str | bytes, count: int, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Cells.set_count`, blocking."""
        self._call(self._wrapped.set_count, space, key, count, timeout_s=timeout_s)

    def set_ttl(
        self, space: str, key: str | bytes, ttl_s: float, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Cells.set_ttl`, blocking."""
        self._call(self._wrapped.set_ttl, space, key, ttl_s, timeout_s=timeout_s)

    def extend(
        self, space: str, key: str | bytes, seconds: float, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Cells.extend`, blocking."""
        self._call(self._wrapped.extend, space, key, seconds, timeout_s=timeout_s)

    def shorten(
        self, space: str, key: str | bytes, seconds: float, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Cells.shorten`, blocking."""
        self._call(self._wrapped.shorten, space, key, seconds, timeout_s=timeout_s)

    def drop(self, space: str, key: str | bytes, *, timeout_s: float | None = None) -> bool:
        """As :meth:`tmqp_client.Cells.drop`, blocking."""
        result: bool = self._call(self._wrapped.drop, space, key, timeout_s=timeout_s)
        return result


class ListedCells(Blocking[AsyncListedCells]):
    """The blocking form of :class:`tmqp_client.ListedCells`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> CellInformation:
        result: CellInformation = self._next()
        return result
