"""The blocking client: opening, closing, and the methods that cannot be generated."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar, get_type_hints

from tmqp.address import Address
from tmqp_client import client as async_client
from tmqp_client._core.arguments import Headers, Payload
from tmqp_client._io.admission import WhenFull
from tmqp_client._report import BatchReport
from tmqp_client.batch import Batch as AsyncBatch
from tmqp_client.binding import Converter
from tmqp_client.config import ClientLimits
from tmqp_client.connection_events import ConnectionEvents as AsyncConnectionEvents
from tmqp_client.consumer import Consumer as AsyncConsumer
from tmqp_client.consumer import ConsumerIterator as AsyncConsumerIterator
from tmqp_client.consumer import TemporaryQueue as AsyncTemporaryQueue
from tmqp_client.custom import CustomMessage as AsyncCustomMessage
from tmqp_client.custom import CustomMessages as AsyncCustomMessages
from tmqp_client.direct import DirectMessage as AsyncDirectMessage
from tmqp_client.direct import DirectMessages as AsyncDirectMessages
from tmqp_client.events import Events as AsyncEvents
from tmqp_client.handling import HandlerAcknowledge, RetryPolicy
from tmqp_client.message import Message as AsyncMessage
from tmqp_client.operations.browsing import PeekedMessages as AsyncPeekedMessages
from tmqp_client.operations.cells import Cells as AsyncCells
from tmqp_client.operations.cells import ListedCells as AsyncListedCells
from tmqp_client.operations.reading import KeptMessages as AsyncKeptMessages
from tmqp_client.pull import Pull as AsyncPull
from tmqp_client.reconnect import ReconnectPolicy
from tmqp_client.sync._blocking import Blocking, Loop, in_thread
from tmqp_client.sync._generated_kept import Kept
from tmqp_client.sync._generated_more import More
from tmqp_client.sync._generated_own import Own
from tmqp_client.sync._generated_received import (
    Batch,
    Consumer,
    ConsumerIterator,
    DirectMessage,
    DirectMessages,
    Message,
    Pull,
    TemporaryQueue,
)
from tmqp_client.sync._generated_streams import (
    Cells,
    ConnectionEvents,
    CustomMessage,
    CustomMessages,
    Events,
    KeptMessages,
    ListedCells,
    PeekedMessages,
    Unclaimed,
)
from tmqp_client.unclaimed import Unclaimed as AsyncUnclaimed

__all__ = ["Client", "connect"]

_F = TypeVar("_F", bound=Callable[..., Any])
_IN_FLIGHT: Final = 1_000
_RECONNECT: Final = ReconnectPolicy()

#: The blocking form of each async class that a client returns.
_BLOCKING: Final[dict[type, type[Blocking[Any]]]] = {
    AsyncMessage: Message,
    AsyncDirectMessage: DirectMessage,
    AsyncConsumerIterator: ConsumerIterator,
    AsyncConsumer: Consumer,
    AsyncBatch: Batch,
    AsyncTemporaryQueue: TemporaryQueue,
    AsyncPull: Pull,
    AsyncDirectMessages: DirectMessages,
    AsyncCustomMessage: CustomMessage,
    AsyncCustomMessages: CustomMessages,
    AsyncEvents: Events,
    AsyncUnclaimed: Unclaimed,
    AsyncKeptMessages: KeptMessages,
    AsyncPeekedMessages: PeekedMessages,
    AsyncCells: Cells,
    AsyncListedCells: ListedCells,
    AsyncConnectionEvents: ConnectionEvents,
}
_ASYNC_OF: Final[dict[Any, type]] = {wrapped: kind for kind, wrapped in _BLOCKING.items()}


def _wrap(value: Any, loop: Loop) -> Any:
    """Return the blocking form of a value; other values unchanged."""
    wrapped = _BLOCKING.get(type(value))
    return value if wrapped is None else wrapped(value, loop, _wrap)


def connect(
    address: str | Address | Sequence[str | Address],
    *,
    client_id: str | None = None,
    name: str = "",
    type: str = "",
    token: str = "",
    properties: Mapping[str, str] | None = None,
    limits: ClientLimits | None = None,
    ssl_context: ssl.SSLContext | None = None,
    reconnect: ReconnectPolicy | None = _RECONNECT,
    when_full: WhenFull = "block",
    linger_s: float | None = 5.0,
    converter: Converter | None = None,
    backend: str = "asyncio",
) -> Client:
    """Return a client that connects when it is entered; parameters as
    :func:`tmqp_client.connect`.

    :param backend: the event loop it runs on: ``asyncio`` or ``trio``.
    """
    wrapped = async_client.connect(
        address,
        client_id=client_id,
        name=name,
        type=type,
        token=token,
        properties=properties,
        limits=limits,
        ssl_context=ssl_context,
        reconnect=reconnect,
        when_full=when_full,
        linger_s=linger_s,
        converter=converter,
    )
    return Client(wrapped, Loop(backend), _wrap)


class Client(Own, Kept, More):
    """The blocking form of :class:`tmqp_client.Client`; made by :func:`connect`, used once."""

    def __enter__(self) -> Self:
        """Connect; raises as the async client does."""
        self._loop.start()
        try:
            self._loop.enter(self._wrapped)
        except BaseException as error:
            self._loop.stop(error)
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._loop.running:
            return
        try:
            self._loop.leave(exc)
        finally:
            self._loop.stop(None)

    def open(self) -> Self:
        """Connect without ``with``: for example, at a prompt."""
        return self.__enter__()

    def close(self) -> None:
        """Close without ``with``; closing twice does nothing."""
        self.__exit__(None, None, None)

    def aclose(self) -> None:
        """Close from any thread: waiting calls raise :class:`tmqp_client.ClientClosed`, and loops
        over consumers end.  The thread that opened the client must still leave its block."""
        if self._loop.running:
            self._call(self._wrapped.aclose)

    def push_many(
        self,
        channel: str,
        queue_id: int,
        payloads: Iterable[Payload],
        *,
        headers: Headers = (),
        high_priority: bool = False,
        wait: bool = True,
        in_flight: int = _IN_FLIGHT,
        timeout_s: float | None = None,
        delay_s: float | None = None,
        deliver_at: datetime | None = None,
        expires_s: float | None = None,
        key: str | None = None,
        room_s: float | None = None,
    ) -> BatchReport:
        """As :meth:`tmqp_client.Client.push_many`; the iterator ``payloads`` may block."""
        report: BatchReport = self._call(
            self._wrapped.push_many,
            channel,
            queue_id,
            in_thread(payloads),
            headers=headers,
            high_priority=high_priority,
            wait=wait,
            in_flight=in_flight,
            timeout_s=timeout_s,
            delay_s=delay_s,
            deliver_at=deliver_at,
            expires_s=expires_s,
            key=key,
            room_s=room_s,
        )
        return report

    # -- handlers -------------------------------------------------------------------------------

    def handler(
        self,
        channel: str,
        queue_id: int | None = None,
        *,
        concurrency: int = 1,
        acknowledge: HandlerAcknowledge = "after",
        retry: RetryPolicy | None = None,
    ) -> Callable[[_F], _F]:
        """As :meth:`tmqp_client.Client.handler`; the function is called in threads."""
        register = self._wrapped.handler(
            channel, queue_id, concurrency=concurrency, acknowledge=acknowledge, retry=retry
        )
        return functools.partial(self._register, register)

    def responder(
        self, content_type: int | None = None, *, concurrency: int = 1
    ) -> Callable[[_F], _F]:
        """As :meth:`tmqp_client.Client.responder`; the function is called in threads."""
        register = self._wrapped.responder(content_type, concurrency=concurrency)
        return functools.partial(self._register, register)

    def _register(self, register: Callable[[Any], Any], function: _F) -> _F:
        """Register a function that gets the blocking forms of messages."""

        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            return function(*[self._wrap(argument) for argument in arguments])

        hints = get_type_hints(function)
        call.__annotations__ = {name: _ASYNC_OF.get(kind, kind) for name, kind in hints.items()}
        register(call)
        return function

    def run(self) -> None:
        """As :meth:`tmqp_client.Client.run`: returns when another thread closes the client, or on
        Ctrl-C."""
        self._call(self._wrapped.run)
