"""Handlers: functions that are called for each message, with bounded concurrency.

Theory of operation.  A decorator registers a function; :meth:`Handling.run` opens a consumer for
each, with as many workers as calls may run at once, and one reader of direct messages for all
responders.  A worker takes a message, calls the function, and answers according to its result.  If
the function fails, the same worker calls it again as its :class:`RetryPolicy` says, so that a queue
whose messages all fail slows down instead of looping.

The annotation of its first parameter decides what a function gets: :class:`Message` (or
:class:`DirectMessage`) the message itself, ``bytes`` its payload, ``str`` its payload as text; for
any other type, the client's converter converts the payload.  A second parameter, of any name, gets
the message.  A function that is not async runs in a thread.
"""

from __future__ import annotations

import inspect
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, get_type_hints

import anyio
import anyio.to_thread

from tmqp.backoff import Backoff
from tmqp.constants import NackReason, ResultCode
from tmqp.errors import LocalProtocolError
from tmqp_client._port import Operations, Port
from tmqp_client._received import HasPayload
from tmqp_client.binding import Converter, JsonConverter
from tmqp_client.consumer import Consumer
from tmqp_client.direct import DirectMessage, DirectMessages
from tmqp_client.errors import ClientError, Refuse, Unreadable
from tmqp_client.message import Message

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

__all__ = ["HandlerAcknowledge", "Handling", "RetryPolicy"]

_LOG: Final = logging.getLogger("tmqp_client")
#: The reason of the negative acknowledgement of a payload that cannot be converted.
_UNREADABLE: Final = "unreadable"

#: ``after`` acknowledges when the function has returned, negatively when it has failed for good;
#: ``before`` acknowledges first, so that a message is handled at most once; ``none`` leaves the
#: answer to the function.
HandlerAcknowledge: TypeAlias = Literal["after", "before", "none"]

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a failing handler is called again, and after which delays.

    :raises LocalProtocolError: if a value is out of range.
    """

    attempts: int = 1
    """Calls in all, the first one counted."""

    initial_delay_s: float = 0.1
    """Seconds before the second call, at most."""

    max_delay_s: float = 10.0
    """The longest wait before a call, in seconds: each wait is twice the previous one."""

    jitter: float = 0.5
    """The share of each wait that is left to chance."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise LocalProtocolError(f"attempts must be at least 1, got {self.attempts!r}")
        if not (self.initial_delay_s >= 0 and self.max_delay_s >= 0 and 0 <= self.jitter <= 1):
            raise LocalProtocolError("delays must not be negative; jitter must be between 0 and 1")

    def delay_s(self, attempt: int, chance: float) -> float:
        """Return how many seconds to wait after this many calls.

        :param chance: a random number from 0 to 1.
        """
        return Backoff(self.initial_delay_s, self.max_delay_s, self.jitter).delay_s(attempt, chance)


class _Function:
    """A registered function: the argument that it expects, and how to call it."""

    def __init__(self, function: Callable[..., Any], message_type: type) -> None:
        self.name = getattr(function, "__qualname__", repr(function))
        self._function = function
        self._async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object whose call is async
        )
        try:
            names = list(inspect.signature(function).parameters)
        except ValueError:  # some built-in functions have no signature
            names = []
        if not 1 <= len(names) <= 2:
            raise LocalProtocolError(f"{self.name} takes a message, or a payload and the message")
        self._two = len(names) == 2
        try:
            hints = get_type_hints(function)
        except NameError as error:
            raise LocalProtocolError(f"{self.name}: {error}") from None
        kind: Any = hints.get(names[0], message_type)
        self.kind = None if kind is message_type else kind

    async def call(self, message: Message | DirectMessage, converter: Converter | None) -> Any:
        """Call it for a message.

        :raises Unreadable: if the payload cannot be converted for it.
        """
        value: Any = message
        if self.kind is bytes:
            value = message.payload
        elif self.kind is str:
            try:
                value = message.text
            except UnicodeDecodeError:
                raise Unreadable("the payload is not UTF-8 text") from None
        elif self.kind is not None:
            assert converter is not None, "registering has seen to it"
            value = _decode(converter, message.payload, self.kind)
        arguments = (value, message) if self._two else (value,)
        if self._async:
            result: Awaitable[Any] = self._function(*arguments)
            return await result
        return await anyio.to_thread.run_sync(
            lambda: self._function(*arguments), abandon_on_cancel=True
        )

    @property
    def converted(self) -> bool:
        """Whether a converter is needed for the value."""
        return self.kind is not None and self.kind is not bytes and self.kind is not str


def _decode(converter: Converter, payload: bytes, kind: Any) -> Any:
    try:
        return converter.decode(payload, kind)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(f"the payload cannot be read: {error}") from error


class _Handler:
    """A function for the messages of a queue."""

    def __init__(
        self,
        function: _Function,
        where: tuple[str, int | None],
        concurrency: int,
        acknowledge: HandlerAcknowledge,
        retry: RetryPolicy,
    ) -> None:
        self._function = function
        self._where = where
        self._concurrency = concurrency
        self._acknowledge = acknowledge
        self._retry = retry
        self._random = random.Random()  # noqa: S311 - it spreads waits, it keeps no secret

    async def run(self, client: Handling, *, task_status: TaskStatus[None]) -> None:
        """Handle messages until the client is closed."""
        consumer = Consumer(client._port, *self._where, "manual", join=True)
        async with consumer, anyio.create_task_group() as tasks:
            task_status.started()
            for _ in range(self._concurrency):
                tasks.start_soon(self._work, client, consumer)

    async def _work(self, client: Handling, consumer: Consumer) -> None:
        async for message in consumer:
            await self._handle(client, message)

    async def _handle(self, client: Handling, message: Message) -> None:
        """Call the function until it succeeds or is given up, and answer."""
        if self._acknowledge == "before":
            await message.ack()
        attempt = 1
        while True:
            try:
                await self._function.call(message, client._port.converter)
            except (Refuse, Unreadable) as error:
                reason = error.reason if isinstance(error, Refuse) else _UNREADABLE
                _LOG.warning("%s: %r refused: %s", self._function.name, message, error)
                await self._answer(message, reason)
                return
            except Exception:  # noqa: BLE001 - whatever a program's function raises
                if attempt >= self._retry.attempts:
                    _LOG.exception(
                        "%s: %r failed, attempt %d", self._function.name, message, attempt
                    )
                    await self._answer(message, NackReason.ERROR.value)
                    return
                what = (self._function.name, message, attempt)
                _LOG.warning("%s: %r failed, attempt %d", *what, exc_info=True)
                await anyio.sleep(self._retry.delay_s(attempt, self._random.random()))
                attempt += 1
            else:
                await self._answer(message, None)
                return

    async def _answer(self, message: Message, reason: str | None) -> None:
        if self._acknowledge != "after" or message.answered:
            return
        if reason is None:
            await message.ack()
        else:
            await message.nack(reason)


class _Responder:
    """A function for direct messages of one content type, or of all types without one."""

    def __init__(self, function: _Function, concurrency: int) -> None:
        self._function = function
        self.room = anyio.Semaphore(concurrency)

    async def respond(self, client: Handling, message: DirectMessage) -> None:
        """Call the function, answer, and release the place for the next call."""
        try:
            async with message:
                await self._respond(client, message)
        except ClientError as error:
            _LOG.warning("%s: %r was not answered: %s", self._function.name, message, error)
        except Exception:  # noqa: BLE001 - whatever a program's function raises
            _LOG.exception("%s: %r failed", self._function.name, message)
        finally:
            self.room.release()

    async def _respond(self, client: Handling, message: DirectMessage) -> None:
        try:
            value = await self._function.call(message, client._port.converter)
        except Refuse as error:
            await message.respond(error.code, error.reason)
            return
        except Unreadable as error:
            await message.respond(ResultCode.BAD_REQUEST, str(error))
            return
        if value is None or not message.requires_response or message.responded:
            return
        if not isinstance(value, bytes | bytearray | memoryview | str):
            value = client.converter.encode(value)
        await message.respond(ResultCode.OK, value)


class Handling(Operations):
    """The methods of :class:`tmqp_client.Client` about functions that handle messages."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._handlers: list[_Handler] = []
        self._responders: dict[int | None, _Responder] = {}

    @property
    def converter(self) -> Converter:
        """The client's converter between a program's classes and payloads.

        :raises LocalProtocolError: if none was given, and cattrs, which the default needs, is not
            installed.
        """
        if self._port.converter is None:
            self._port.converter = JsonConverter()
        return self._port.converter

    def encode(self, value: object) -> bytes:
        """Convert a value to a payload with the client's converter.

        :raises LocalProtocolError: if the value cannot be converted, or cattrs is missing.
        """
        return self.converter.encode(value)

    def decode(self, message: HasPayload, kind: type[_T]) -> _T:
        """Convert the payload of a message or a response to a value of this type.

        :raises Unreadable: if the payload cannot be converted.
        """
        value: _T = _decode(self.converter, message.payload, kind)
        return value

    def handler(
        self,
        channel: str,
        queue_id: int | None = None,
        *,
        concurrency: int = 1,
        acknowledge: HandlerAcknowledge = "after",
        retry: RetryPolicy | None = None,
    ) -> Callable[[_F], _F]:
        """Register a function for the messages of a queue, or of all queues of a channel.

        ::

            @client.handler("orders", 1, concurrency=8)
            async def bake(order: Order) -> None: ...


            await client.run()

        :param concurrency: the number of messages handled at a time.
        :param acknowledge: see :data:`HandlerAcknowledge`.
        :param retry: how often to call it, and after which delays, if it raises; only once if None.
            If it raises :class:`Refuse`, or the payload cannot be converted, the message is refused
            at once.
        :raises LocalProtocolError: if the function, or an argument, is not supported.
        """
        if concurrency < 1:
            raise LocalProtocolError(f"concurrency must be at least 1, got {concurrency!r}")
        if acknowledge not in ("after", "before", "none"):
            raise LocalProtocolError(f"acknowledge must be after, before or none: {acknowledge!r}")

        def register(function: _F) -> _F:
            wrapped = self._wrap(function, Message)
            where = (channel, queue_id)
            policy = retry or RetryPolicy()
            self._handlers.append(_Handler(wrapped, where, concurrency, acknowledge, policy))
            return function

        return register

    def responder(
        self, content_type: int | None = None, *, concurrency: int = 1
    ) -> Callable[[_F], _F]:
        """Register a function for direct messages of a content type, or of all others.

        Its return value is the response: bytes or text unchanged, None for 204 (no content),
        anything else by the client's converter.  If it raises :class:`Refuse`, the response has its
        code; any other exception responds with 500, and a payload that cannot be converted with
        400.

        :param concurrency: the number of messages handled at a time; further ones wait.
        :raises LocalProtocolError: if the function, or an argument, is not supported.
        """
        if concurrency < 1:
            raise LocalProtocolError(f"concurrency must be at least 1, got {concurrency!r}")
        if content_type in self._responders:
            raise LocalProtocolError(f"content type {content_type} already has a responder")

        def register(function: _F) -> _F:
            wrapped = self._wrap(function, DirectMessage)
            self._responders[content_type] = _Responder(wrapped, concurrency)
            return function

        return register

    def _wrap(self, function: Callable[..., Any], message_type: type) -> _Function:
        wrapped = _Function(function, message_type)
        if wrapped.converted:
            _ = self.converter  # raises now if cattrs is missing
        return wrapped

    async def run(self, *, task_status: TaskStatus[None] | None = None) -> None:
        """Call the registered functions for arriving messages, until the client is closed.

        ``await task_group.start(client.run)`` returns when all channels are joined and all
        listeners are ready.  If there is a responder, direct messages of other content types are
        answered with 404.

        :raises LocalProtocolError: if none is registered.
        :raises ClientError: the error that ended a consumer: :class:`ConnectionLost` if the client
            has given up reconnecting, ``OperationFailed`` if a channel cannot be joined.
        """
        if not self._handlers and not self._responders:
            raise LocalProtocolError("there is no handler and no responder to run")
        try:
            async with anyio.create_task_group() as tasks:
                for handler in self._handlers:
                    await tasks.start(handler.run, self)
                if self._responders:
                    await tasks.start(self._respond)
                if task_status is not None:
                    task_status.started()
        except BaseExceptionGroup as group:
            raise _first_of(group) from group

    async def _respond(self, *, task_status: TaskStatus[None]) -> None:
        listening = DirectMessages(self._port)
        async with listening as messages, anyio.create_task_group() as tasks:
            task_status.started()
            async for message in messages:
                responder = self._responders.get(message.content_type, self._responders.get(None))
                if responder is None:
                    async with message:
                        await message.respond(ResultCode.NOT_FOUND)
                    continue
                await responder.room.acquire()
                tasks.start_soon(responder.respond, self, message)


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, which is the cause if several tasks have ended."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
