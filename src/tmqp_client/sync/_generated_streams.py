"""What a blocking client listens to.

Made by ``python -m tools.make_sync``: edit the async side, and run that.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tmqp.events import MessageReceived
from tmqp_client.connection_events import ConnectionEvent
from tmqp_client.connection_events import ConnectionEvents as AsyncConnectionEvents
from tmqp_client.custom import CustomMessage as AsyncCustomMessage
from tmqp_client.custom import CustomMessages as AsyncCustomMessages
from tmqp_client.events import AnyEvent
from tmqp_client.events import Events as AsyncEvents
from tmqp_client.operations.browsing import PeekedMessages as AsyncPeekedMessages
from tmqp_client.operations.reading import KeptMessages as AsyncKeptMessages
from tmqp_client.reading import KeptMessage, PeekedMessage
from tmqp_client.sync._blocking import Blocking
from tmqp_client.unclaimed import Unclaimed as AsyncUnclaimed

__all__ = [
    "ConnectionEvents",
    "CustomMessage",
    "CustomMessages",
    "Events",
    "KeptMessages",
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
