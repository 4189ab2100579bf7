"""Consumers: the messages of a channel or of one queue as an async iterator.

Theory of operation.  A consumer first opens its inbox and then joins the channel, because messages
usually arrive before the answer to the join (F48).  In the automatic mode each iterator holds the
message that it returned last; a request for the next one means that the loop's body has succeeded.
When the consumer closes, the way in which the block was left decides about the message that an
iterator still holds: a normal end acknowledges it, an exception refuses it, and a cancellation
leaves it unanswered.
"""

from __future__ import annotations

from types import TracebackType
from typing import Literal, Self, TypeAlias

import anyio

from tmqp import models
from tmqp.constants import RESULT_NOT_FOUND, NackReason
from tmqp.errors import LocalProtocolError
from tmqp.extensions import LIFETIME_OWNER
from tmqp.frames import Frame
from tmqp_client._core import requests
from tmqp_client._core.arguments import NO_HEADERS, Pairs
from tmqp_client._core.requests import Request
from tmqp_client._io.stream import InboxReader
from tmqp_client._port import Port
from tmqp_client.errors import ClientClosed, ConnectionLost, OperationFailed, OperationTimeout
from tmqp_client.message import Message

__all__ = ["AcknowledgeMode", "Consumer", "ConsumerIterator", "TemporaryQueue"]

#: ``auto`` answers by how the loop's body ends, ``manual`` leaves it to the program.
AcknowledgeMode: TypeAlias = Literal["auto", "manual"]


class Consumer:
    """The messages of one queue, or of all queues of a channel that have no separate consumer.

    Made by :meth:`tmqp_client.Client.consume`::

        async with client.consume("orders", 1) as messages:
            async for message in messages:
                ...

    Several tasks may iterate over one consumer; each message goes to one of them.  Without
    ``async with``, the first iteration opens it and closing the client closes it.
    """

    def __init__(
        self,
        port: Port,
        channel: str,
        queue_id: int | None,
        acknowledge: AcknowledgeMode,
        join: bool,
        wanted: Request | None = None,
        terms: Pairs = NO_HEADERS,
    ) -> None:
        if acknowledge not in ("auto", "manual"):
            raise LocalProtocolError(f"acknowledge must be 'auto' or 'manual', not {acknowledge!r}")
        self._channel = channel
        self._queue_id = queue_id
        self._port = port
        self._automatic = acknowledge == "auto"
        self._join = join
        #: The join to send; None keeps that of the client, or else joins without a filter.
        self._wanted = wanted
        self._terms = terms
        self._lock = anyio.Lock()
        self._reader: InboxReader[Frame] | None = None
        self._held: dict[Message, None] = {}
        self._closed = False

    @property
    def channel(self) -> str:
        """The channel whose messages it receives."""
        return self._channel

    @property
    def queue_id(self) -> int | None:
        """The queue whose messages it receives; None for all queues without a separate consumer."""
        return self._queue_id

    # -- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            await self.aclose()
        elif self._shut(exc):
            self._port.session.tell(requests.leave(self.channel))

    async def aclose(self) -> None:
        """Acknowledge the current message in automatic mode, and leave the channel if no other
        consumer uses it and :meth:`tmqp_client.Client.join` was not called for it.

        Messages that have arrived and were not read stay unanswered: the server redelivers them
        after their timeout (F99).  Closing twice, or after the connection was lost, does nothing.

        :raises OperationError: if the server refuses that the client leaves the channel.
        """
        if not self._shut(None):
            return
        try:
            await self._port.session.retract(requests.leave(self.channel))
        except OperationFailed as error:
            if error.code != RESULT_NOT_FOUND:  # otherwise the channel no longer exists (F49)
                raise
        except (ConnectionLost, ClientClosed):
            pass  # nothing is joined any more

    async def _open(self) -> None:
        async with self._lock:
            if self._closed:
                raise ClientClosed(f"the consumer of {self.channel!r} was closed")
            if self._reader is not None:
                return
            session = self._port.session
            session.check()
            self._reader = InboxReader(self._port.machine.subscribe(self.channel, self.queue_id))
            self._port.iterators[self] = None
            if not self._join:
                return
            try:
                wanted = self._wanted or self._port.machine.join_of(self.channel)
                wanted = requests.with_terms(wanted, self._terms)
                await session.ask(wanted, repeat=True)
            except OperationFailed as error:
                self._shut(error)
                raise
            except BaseException as error:
                # It is unknown whether the server has carried out the join.
                if self._shut(error):
                    session.tell(requests.leave(self.channel))
                raise

    def _shut(self, error: BaseException | None) -> bool:
        """Stop consuming; return whether the client should leave the channel.

        :param error: the exception that ended the block, if any; decides how the held messages are
            answered.
        """
        if self._closed:
            return False
        self._closed = True
        if self._reader is None:
            return False
        if error is None or isinstance(error, Exception):
            reason = None if error is None else NackReason.ERROR.value
            for message in self._held:
                message._answer_now(reason)
        self._held.clear()
        port = self._port
        self._reader.ended()
        port.iterators.pop(self, None)
        port.machine.unsubscribe(self.channel, self.queue_id)
        port.session.read_on()
        return (
            self._join
            and port.session.lost is None
            and not port.machine.subscribed(self.channel)
            and self.channel.lower() not in port.joined
        )

    # -- messages -------------------------------------------------------------------------------

    def __aiter__(self) -> ConsumerIterator:
        return ConsumerIterator(self)

    async def get(self, *, timeout_s: float | None = None) -> Message:
        """Return the next message.  The caller must answer it in every mode.

        :param timeout_s: the longest time to wait, in seconds; None for no limit.
        :raises OperationTimeout: if no message arrived in that time.
        :raises ClientClosed: if the consumer or the client was closed.
        :raises ConnectionLost: if the connection was lost and the client has given up reconnecting.
        :raises OperationFailed: if the channel could not be joined again on a new connection.
        """
        message: Message | None = None
        with anyio.move_on_after(float("inf") if timeout_s is None else timeout_s) as scope:
            message = await self._next()
        if message is not None:
            return message
        if scope.cancelled_caught:
            assert timeout_s is not None, "only then it is cancelled"
            raise OperationTimeout(f"get from {self.channel!r}", "", timeout_s)
        raise ClientClosed(f"the consumer of {self.channel!r} was closed")

    def _next_now(self) -> Message | None:
        """Return the next message; None if none has arrived, or other tasks should run first."""
        reader = self._reader
        if reader is None:
            return None
        crowded = reader.congested
        frame = reader.take_now()
        if frame is None:
            return None
        port = self._port
        session = port.session
        if crowded:
            session.read_on()
        return Message(frame, session, port.machine.epoch)

    async def _next(self) -> Message | None:
        """Return the next message; None once this side has closed."""
        if self._reader is None:
            await self._open()
            assert self._reader is not None, "it is open now"
        session = self._port.session
        crowded = self._reader.congested
        frame = await self._reader.take()
        if crowded:
            session.read_on()
        if frame is not None:
            return Message(frame, session, session.epoch)
        if self._reader.error is not None and not self._closed:
            raise self._reader.error
        if self._closed or session.lost is None or session.lost.reason == "local":
            return None
        raise session.lost.error()


class TemporaryQueue(Consumer):
    """A queue of this client only, removed with the client: for example, for answers.

    Made by :meth:`tmqp_client.Client.temporary_queue`; ``channel`` is the name to which answers are
    sent, and the queue's id is 0.  Entering the block creates and joins the channel, leaving it
    removes the channel with its messages.  On a new connection the client creates it again, empty.
    """

    def __init__(self, port: Port, channel: str, acknowledge: AcknowledgeMode) -> None:
        super().__init__(port, channel, 0, acknowledge, True)
        self._there = False

    async def __aenter__(self) -> Self:
        options = models.ChannelOptions(
            lifetime=LIFETIME_OWNER,
            owner_only=True,
            allow_multiple_queues=False,
            destroy_when_empty=False,
            durable=False,
            overflow=False,
            retain_bytes=0,
            retain_time_ms=0,
            retain_for_readers=False,
        )
        request = requests.create_queue(self.channel, 0, options, "push", None, None, None, ())
        await self._port.session.ask(request)
        self._there = True
        try:
            return await super().__aenter__()
        except BaseException:
            self._drop()
            raise

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(exc_type, exc, traceback)
        if exc is not None:
            self._drop()

    async def aclose(self) -> None:
        """Close as :meth:`Consumer.aclose` does, and remove the channel."""
        try:
            await super().aclose()
            if self._there:
                await self._port.session.retract(requests.remove_channel(self.channel))
        except OperationFailed as error:
            if error.code != RESULT_NOT_FOUND:  # otherwise another client has removed it
                raise
        except (ConnectionLost, ClientClosed):
            pass  # it has gone with the connection
        else:
            self._there = False
        finally:
            self._drop()

    def _drop(self) -> None:
        """Remove the channel without waiting, if it may still exist."""
        session = self._port.session
        if self._there and session.lost is None:
            self._there = False
            request = requests.remove_channel(self.channel)
            session.tell(request)
            self._port.machine.forget(request)


class ConsumerIterator:
    """One loop over a consumer; in automatic mode it acknowledges the messages that it returns."""

    __slots__ = ("_consumer", "_message")

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._message: Message | None = None

    def __aiter__(self) -> ConsumerIterator:
        return self

    async def __anext__(self) -> Message:
        """Return the next message, after acknowledging the previous one (automatic mode).

        :raises ConnectionLost: if the connection has ended for good.
        :raises OperationFailed: if the channel could not be joined again on a new connection.
        """
        consumer = self._consumer
        message = self._message
        if message is not None:
            if not message._done():
                # Does nothing if its connection has ended: the message is redelivered.
                await message.ack()
            self._message = None
            if message.frame.pending_acknowledge:
                consumer._held.pop(message, None)
        message = consumer._next_now()
        if message is None:
            message = await consumer._next()
            if message is None:
                raise StopAsyncIteration
        if consumer._automatic:
            self._message = message
            if message.frame.pending_acknowledge:
                consumer._held[message] = None
        return message
