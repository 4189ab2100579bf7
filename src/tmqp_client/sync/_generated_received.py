"""What the blocking client returns.

Made by ``python -m tools.make_sync``: edit the async side, and run that.
"""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Literal, Self

from tmqp.constants import NackReason
from tmqp_client._core.arguments import Headers, Payload
from tmqp_client.batch import Batch as AsyncBatch
from tmqp_client.consumer import Consumer as AsyncConsumer
from tmqp_client.consumer import ConsumerIterator as AsyncConsumerIterator
from tmqp_client.consumer import TemporaryQueue as AsyncTemporaryQueue
from tmqp_client.direct import DirectMessage as AsyncDirectMessage
from tmqp_client.direct import DirectMessages as AsyncDirectMessages
from tmqp_client.message import Message as AsyncMessage
from tmqp_client.pull import Pull as AsyncPull
from tmqp_client.sync._blocking import Blocking

__all__ = [
    "Batch",
    "Consumer",
    "ConsumerIterator",
    "DirectMessage",
    "DirectMessages",
    "Message",
    "Pull",
    "TemporaryQueue",
]


class Message(Blocking[AsyncMessage]):
    """The blocking form of :class:`tmqp_client.Message`."""

    @property
    def channel(self) -> str:
        """As :attr:`tmqp_client.Message.channel`."""
        return self._wrapped.channel

    @property
    def queue_id(self) -> int:
        """As :attr:`tmqp_client.Message.queue_id`."""
        return self._wrapped.queue_id

    @property
    def message_id(self) -> str:
        """As :attr:`tmqp_client.Message.message_id`."""
        return self._wrapped.message_id

    @property
    def source(self) -> str:
        """As :attr:`tmqp_client.Message.source`."""
        return self._wrapped.source

    @property
    def high_priority(self) -> bool:
        """As :attr:`tmqp_client.Message.high_priority`."""
        return self._wrapped.high_priority

    @property
    def first_acquirer(self) -> bool:
        """As :attr:`tmqp_client.Message.first_acquirer`."""
        return self._wrapped.first_acquirer

    @property
    def redelivered(self) -> bool:
        """As :attr:`tmqp_client.Message.redelivered`."""
        return self._wrapped.redelivered

    @property
    def requires_acknowledge(self) -> bool:
        """As :attr:`tmqp_client.Message.requires_acknowledge`."""
        return self._wrapped.requires_acknowledge

    @property
    def answered(self) -> bool:
        """As :attr:`tmqp_client.Message.answered`."""
        return self._wrapped.answered

    @property
    def stale(self) -> bool:
        """As :attr:`tmqp_client.Message.stale`."""
        return self._wrapped.stale

    @property
    def lapsed(self) -> str:
        """As :attr:`tmqp_client.Message.lapsed`."""
        return self._wrapped.lapsed

    def ack(self) -> bool:
        """As :meth:`tmqp_client.Message.ack`, blocking."""
        result: bool = self._call(self._wrapped.ack)
        return result

    def nack(self, reason: str = NackReason.NONE) -> bool:
        """As :meth:`tmqp_client.Message.nack`, blocking."""
        result: bool = self._call(self._wrapped.nack, reason)
        return result

    def release(
        self, *, delay_s: float = 0.0, to: Literal["front", "end"] = "end", counted: bool = True
    ) -> bool:
        """As :meth:`tmqp_client.Message.release`, blocking."""
        result: bool = self._call(self._wrapped.release, delay_s=delay_s, to=to, counted=counted)
        return result

    def extend(self, seconds: float, *, timeout_s: float | None = None) -> bool:
        """As :meth:`tmqp_client.Message.extend`, blocking."""
        result: bool = self._call(self._wrapped.extend, seconds, timeout_s=timeout_s)
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

    @property
    def payload(self) -> bytes:
        """As :attr:`tmqp_client.Message.payload`."""
        return self._wrapped.payload

    @property
    def text(self) -> str:
        """As :attr:`tmqp_client.Message.text`."""
        return self._wrapped.text

    @property
    def parts(self) -> list[bytes]:
        """As :attr:`tmqp_client.Message.parts`."""
        return self._wrapped.parts

    @property
    def headers(self) -> list[tuple[str, str]]:
        """As :attr:`tmqp_client.Message.headers`."""
        return self._wrapped.headers

    def header(self, name: str) -> str | None:
        """As :meth:`tmqp_client.Message.header`."""
        return self._wrapped.header(name)


class DirectMessage(Blocking[AsyncDirectMessage]):
    """The blocking form of :class:`tmqp_client.DirectMessage`."""

    @property
    def source(self) -> str:
        """As :attr:`tmqp_client.DirectMessage.source`."""
        return self._wrapped.source

    @property
    def target(self) -> str:
        """As :attr:`tmqp_client.DirectMessage.target`."""
        return self._wrapped.target

    @property
    def content_type(self) -> int:
        """As :attr:`tmqp_client.DirectMessage.content_type`."""
        return self._wrapped.content_type

    @property
    def message_id(self) -> str:
        """As :attr:`tmqp_client.DirectMessage.message_id`."""
        return self._wrapped.message_id

    @property
    def requires_response(self) -> bool:
        """As :attr:`tmqp_client.DirectMessage.requires_response`."""
        return self._wrapped.requires_response

    @property
    def requires_acknowledge(self) -> bool:
        """As :attr:`tmqp_client.DirectMessage.requires_acknowledge`."""
        return self._wrapped.requires_acknowledge

    @property
    def responded(self) -> bool:
        """As :attr:`tmqp_client.DirectMessage.responded`."""
        return self._wrapped.responded

    def respond(self, code: int = 0, payload: Payload = b"") -> None:
        """As :meth:`tmqp_client.DirectMessage.respond`, blocking."""
        self._call(self._wrapped.respond, code, payload)

    def ack(self) -> None:
        """As :meth:`tmqp_client.DirectMessage.ack`, blocking."""
        self._call(self._wrapped.ack)

    def nack(self, reason: str = NackReason.NONE) -> None:
        """As :meth:`tmqp_client.DirectMessage.nack`, blocking."""
        self._call(self._wrapped.nack, reason)

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

    @property
    def payload(self) -> bytes:
        """As :attr:`tmqp_client.DirectMessage.payload`."""
        return self._wrapped.payload

    @property
    def text(self) -> str:
        """As :attr:`tmqp_client.DirectMessage.text`."""
        return self._wrapped.text

    @property
    def parts(self) -> list[bytes]:
        """As :attr:`tmqp_client.DirectMessage.parts`."""
        return self._wrapped.parts

    @property
    def headers(self) -> list[tuple[str, str]]:
        """As :attr:`tmqp_client.DirectMessage.headers`."""
        return self._wrapped.headers

    def header(self, name: str) -> str | None:
        """As :meth:`tmqp_client.DirectMessage.header`."""
        return self._wrapped.header(name)


class ConsumerIterator(Blocking[AsyncConsumerIterator]):
    """The blocking form of :class:`tmqp_client.ConsumerIterator`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        result: Message = self._next()
        return result


class Consumer(Blocking[AsyncConsumer]):
    """The blocking form of :class:`tmqp_client.Consumer`."""

    @property
    def channel(self) -> str:
        """As :attr:`tmqp_client.Consumer.channel`."""
        return self._wrapped.channel

    @property
    def queue_id(self) -> int | None:
        """As :attr:`tmqp_client.Consumer.queue_id`."""
        return self._wrapped.queue_id

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
        """As :meth:`tmqp_client.Consumer.aclose`, blocking."""
        self._call(self._wrapped.aclose)

    def __iter__(self) -> ConsumerIterator:
        result: ConsumerIterator = self._wrap(self._wrapped.__aiter__())
        return result

    def get(self, *, timeout_s: float | None = None) -> Message:
        """As :meth:`tmqp_client.Consumer.get`, blocking."""
        result: Message = self._call(self._wrapped.get, timeout_s=timeout_s)
        return result


class Batch(Blocking[AsyncBatch]):
    """The blocking form of :class:`tmqp_client.Batch`."""

    @property
    def count(self) -> int:
        """As :attr:`tmqp_client.Batch.count`."""
        return self._wrapped.count

    def push(
        self,
        channel: str,
        queue_id: int,
        payload: Payload,
        *,
        headers: Headers = (),
        high_priority: bool = False,
        message_id: str | None = None,
        delay_s: float | None = None,
        deliver_at: datetime | None = None,
        expires_s: float | None = None,
        key: str | None = None,
    ) -> str:
        """As :meth:`tmqp_client.Batch.push`."""
        return self._wrapped.push(
            channel,
            queue_id,
            payload,
            headers=headers,
            high_priority=high_priority,
            message_id=message_id,
            delay_s=delay_s,
            deliver_at=deliver_at,
            expires_s=expires_s,
            key=key,
        )

    def ack(self, message: Message) -> None:
        """As :meth:`tmqp_client.Batch.ack`, blocking."""
        self._call(self._wrapped.ack, message)

    def nack(self, message: Message, reason: str = NackReason.NONE) -> None:
        """As :meth:`tmqp_client.Batch.nack`, blocking."""
        self._call(self._wrapped.nack, message, reason)

    def release(
        self,
        message: Message,
        *,
        delay_s: float = 0.0,
        to: Literal["front", "end"] = "end",
        counted: bool = True,
    ) -> None:
        """As :meth:`tmqp_client.Batch.release`, blocking."""
        self._call(self._wrapped.release, message, delay_s=delay_s, to=to, counted=counted)

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


class TemporaryQueue(Blocking[AsyncTemporaryQueue]):
    """The blocking form of :class:`tmqp_client.TemporaryQueue`."""

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
        """As :meth:`tmqp_client.TemporaryQueue.aclose`, blocking."""
        self._call(self._wrapped.aclose)

    @property
    def channel(self) -> str:
        """As :attr:`tmqp_client.TemporaryQueue.channel`."""
        return self._wrapped.channel

    @property
    def queue_id(self) -> int | None:
        """As :attr:`tmqp_client.TemporaryQueue.queue_id`."""
        return self._wrapped.queue_id

    def __iter__(self) -> ConsumerIterator:
        result: ConsumerIterator = self._wrap(self._wrapped.__aiter__())
        return result

    def get(self, *, timeout_s: float | None = None) -> Message:
        """As :meth:`tmqp_client.TemporaryQueue.get`, blocking."""
        result: Message = self._call(self._wrapped.get, timeout_s=timeout_s)
        return result


class Pull(Blocking[AsyncPull]):
    """The blocking form of :class:`tmqp_client.Pull`."""

    @property
    def reason(self) -> str:
        """As :attr:`tmqp_client.Pull.reason`."""
        return self._wrapped.reason

    def close(self) -> None:
        """As :meth:`tmqp_client.Pull.close`, blocking."""
        self._call(self._wrapped.close)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        result: Message = self._next()
        return result


class DirectMessages(Blocking[AsyncDirectMessages]):
    """The blocking form of :class:`tmqp_client.DirectMessages`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> DirectMessage:
        result: DirectMessage = self._next()
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
        """As :meth:`tmqp_client.DirectMessages.aclose`, blocking."""
        self._call(self._wrapped.aclose)
