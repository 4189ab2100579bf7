"""Messages of queues: pushing, consuming, pulling."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from datetime import datetime
from typing import Final, Literal

from tmqp.constants import HEADER_VALUE_YES, RESULT_NOT_FOUND, HeaderName, PullClear
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_MESSAGE_ID,
    HEADER_RECEIVERS,
    OP_CANCEL_MESSAGE,
    OP_REMOVE_MESSAGE,
)
from tmqp_client._core import requests
from tmqp_client._core.arguments import (
    Headers,
    Payload,
    check_channel,
    check_queue_id,
    payload_bytes,
    to_pairs,
)
from tmqp_client._core.pending import time_limit
from tmqp_client._core.requests import PullRequest, Request, terms_headers
from tmqp_client._io.pushes import Pushes
from tmqp_client._port import Operations, Port
from tmqp_client._report import BatchReport, Pushed
from tmqp_client._times import USUAL_PRIORITY, with_key, with_priority, with_times, with_wait
from tmqp_client.batch import Batch
from tmqp_client.consumer import AcknowledgeMode, Consumer, TemporaryQueue
from tmqp_client.errors import BatchFailed, ClientError, OperationFailed
from tmqp_client.parts import with_parts
from tmqp_client.pull import Pull
from tmqp_client.unclaimed import Unclaimed

__all__ = ["Messages"]

_BATCH_IN_FLIGHT: Final = 1_000


class Messages(Operations):
    """The methods of :class:`tmqp_client.Client` about messages of queues."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._unclaimed: Unclaimed | None = None

    async def push(
        self,
        channel: str,
        queue_id: int,
        payload: Payload,
        *,
        headers: Headers = (),
        high_priority: bool = False,
        wait: bool = True,
        message_id: str | None = None,
        timeout_s: float | None = None,
        nowait: bool = False,
        delay_s: float | None = None,
        deliver_at: datetime | None = None,
        expires_s: float | None = None,
        key: str | None = None,
        room_s: float | None = None,
        priority: int | None = None,
    ) -> str:
        """Push a message into a queue; return its id.

        :param payload: bytes, or text that is sent as UTF-8.
        :param wait: return after the acknowledgement.  The queue's delivery handler decides when it
            is sent: after receiving, saving, delivering or consuming the message, or never (F77).
            Without waiting, a refusal only appears in :meth:`unclaimed`.
        :param message_id: for a message that may be pushed again; a new id if None.
        :param nowait: raise :class:`WouldBlock` if it cannot be queued at once.
        :param delay_s: do not deliver it for this number of seconds.
        :param deliver_at: do not deliver it before this time, by the server's clock.
        :param expires_s: drop it if it still waits after this number of seconds since the push,
            including a delay, instead of the queue's ``message_timeout_ms``.
        :param key: messages with the same key belong together, as defined by the queue's option
            ``group_keys``.
        :param room_s: if the queue is full, wait this number of seconds for room; the server does
            not read from this client meanwhile, and then answers 482 or 503.
        :param priority: 0..9, where 5 and more also have high priority; if the queue's option
            ``priorities`` is ``ten``, each is delivered before the lower ones.
        :raises NegativeAcknowledge: if the queue or its consumer refuses it.
        :raises OperationFailed: if the server refuses it: 404, 401, 482.
        :return: its id; empty if it was dropped (``when_full``).
        """
        data = payload_bytes(payload)
        if type(data) is not bytes:
            headers = with_parts(payload, headers)
        headers = with_key(with_times(headers, delay_s, deliver_at, expires_s), key)
        headers = with_wait(headers, room_s)
        if priority is not None:
            headers = with_priority(headers, priority)
            high_priority = high_priority or priority > USUAL_PRIORITY
        session = self._session
        if wait:
            pending = await session.push(
                channel, queue_id, data, headers, high_priority, message_id, timeout_s, nowait
            )
            return pending.message_id
        sent = session.publish_now(channel, queue_id, data, headers, high_priority, message_id)
        if sent is not None:
            return sent
        return await session.publish(
            channel, queue_id, data, headers, high_priority, message_id, timeout_s, nowait
        )

    async def push_counted(
        self,
        channel: str,
        queue_id: int,
        payload: Payload,
        *,
        headers: Headers = (),
        high_priority: bool = False,
        message_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Pushed:
        """Push a message as :meth:`push` does; return to how many consumers it was sent
        immediately.

        The result is 0 if the message waits for a consumer, and None if the server does not report
        it.
        """
        data = payload_bytes(payload)
        pairs = list(to_pairs(with_parts(payload, headers)))
        pairs.append((HEADER_RECEIVERS, HEADER_VALUE_YES))
        pending = await self._session.push(
            channel, queue_id, data, pairs, high_priority, message_id, timeout_s, False
        )
        answer = None if pending.answer is None else pending.answer.header(HEADER_RECEIVERS)
        receivers = None
        if answer is not None and answer.isascii() and answer.isdigit() and len(answer) < 10:
            receivers = int(answer)
        return Pushed(pending.message_id, receivers)

    async def push_many(
        self,
        channel: str,
        queue_id: int,
        payloads: Iterable[Payload] | AsyncIterable[Payload],
        *,
        headers: Headers = (),
        high_priority: bool = False,
        wait: bool = True,
        in_flight: int = _BATCH_IN_FLIGHT,
        timeout_s: float | None = None,
        delay_s: float | None = None,
        deliver_at: datetime | None = None,
        expires_s: float | None = None,
        key: str | None = None,
        room_s: float | None = None,
    ) -> BatchReport:
        """Push many messages, in order, with up to ``in_flight`` of them unacknowledged; return
        when all are acknowledged.

        :param wait: as in :meth:`push`; if False, return when all are sent.
        :param timeout_s: for each message; so is ``room_s``.
        :raises BatchFailed: if one or more were not confirmed, because they were refused, timed
            out, or the connection was lost; see its report.  The other messages were sent.
        """
        if in_flight < 1:
            raise LocalProtocolError(f"in_flight must be at least 1, got {in_flight!r}")
        headers = with_key(with_times(headers, delay_s, deliver_at, expires_s), key)
        pairs = tuple(to_pairs(with_wait(headers, room_s)))
        batch = Pushes(in_flight)
        session = self._session

        async def push_one(payload: Payload) -> None:
            data = payload_bytes(payload)
            headers = pairs if type(data) is bytes else with_parts(payload, pairs)
            if not wait:
                how = (headers, high_priority, None, timeout_s)
                batch.posted(await session.publish(channel, queue_id, data, *how))
                return
            if batch.full:
                await batch.room()
            pending = await session.begin_push(
                channel, queue_id, data, headers, high_priority, timeout_s, batch
            )
            batch.add(pending)

        cut_off: ClientError | None = None
        try:
            try:
                if isinstance(payloads, AsyncIterable):
                    async for payload in payloads:
                        await push_one(payload)
                else:
                    for payload in payloads:
                        await push_one(payload)
            except ClientError as error:
                if session.lost is None:
                    raise
                cut_off = error
            await batch.all_settled()
        finally:
            for pending in batch.under_way():
                session.abandon(pending)
        report = batch.report(confirm=wait)
        if report.failed:
            raise BatchFailed(report) from cut_off
        if cut_off is not None:
            raise cut_off
        return report

    def batch(self, *, timeout_s: float | None = None) -> Batch:
        """Pushes and acknowledgements that take effect together, or not at all.

        An extension::

            async with client.batch() as batch:
                batch.push("orders", 2, result)
                batch.ack(message)

        The batch takes effect when the block ends; after an exception in the block nothing is sent.
        See :class:`Batch` for what a lost connection means.

        :raises OperationFailed: when the block ends and the server refuses: 401, 404 for a message
            that is no longer in flight to this client (it is redelivered), 406, 482 when a queue or
            the batch is full, 501 in a cluster, 503 when it cannot be saved now.  Then nothing has
            changed, and the messages are unanswered.
        """
        return Batch(self._port, timeout_s)

    async def cancel_message(
        self, channel: str, queue_id: int, message_id: str, *, timeout_s: float | None = None
    ) -> bool:
        """Remove a deferred message that is not due yet, by the id that :meth:`push` returned.

        :return: whether it was removed; False if it is due, was cancelled before, or never arrived.
            All messages with this id are removed: a repeated push may have arrived twice.
        :raises OperationFailed: if the server refuses (401), or could not save the removal (503).
        """
        headers = (
            (HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),
            (HEADER_MESSAGE_ID, message_id),
        )
        request = Request(
            OP_CANCEL_MESSAGE, "cancel message", check_channel(channel), headers, b"", queue_id
        )
        return await self._was_there(request, timeout_s)

    async def remove_message(
        self, channel: str, queue_id: int, message_id: str, *, timeout_s: float | None = None
    ) -> bool:
        """Remove a waiting message from a queue, by its id, at any position.

        For deferred messages, use :meth:`cancel_message`.  Of several messages with this id, the
        first one is removed.

        :return: whether it was removed; False when it is in flight, was consumed, or never existed.
        :raises OperationFailed: when the server refuses (401, or 403 where only the channel's owner
            consumes), when too many clients browse queues, or when the removal could not be saved
            (503).
        """
        headers = (
            (HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),
            (HEADER_MESSAGE_ID, message_id),
        )
        request = Request(
            OP_REMOVE_MESSAGE, "remove message", check_channel(channel), headers, b"", queue_id
        )
        return await self._was_there(request, timeout_s)

    async def _was_there(self, request: Request, timeout_s: float | None) -> bool:
        """Send the request; return False if the server answers that the message does not exist."""
        try:
            await self._session.ask(request, timeout_s)
        except OperationFailed as error:
            if error.code == RESULT_NOT_FOUND:
                return False
            raise
        return True

    async def ping(self, *, timeout_s: float | None = None) -> float:
        """Send a ping; return the seconds until the pong arrived (F37)."""
        pending = await self._session.ping(timeout_s)
        return pending.settled_at - pending.asked_at

    def consume(
        self,
        channel: str,
        queue_id: int | None = None,
        *,
        acknowledge: AcknowledgeMode = "auto",
        join: bool = True,
        filter: str | None = None,
        filter_language: str | None = None,
        window: int | None = None,
        ack_timeout_s: float | None = None,
        returns: Literal["timeout", "front", "end"] | None = None,
        priority: int | None = None,
        exclusive: bool | None = None,
        credit: int | None = None,
        tells_lapsed: bool = False,
    ) -> Consumer:
        """Return the messages of a queue, or of all queues of a channel, as an async iterator; see
        :class:`Consumer`.

        :param acknowledge: ``auto`` acknowledges a message when the loop takes the next one or its
            block ends normally, and negatively (reason ``error``) when an exception ends it;
            ``manual`` leaves it to :meth:`Message.ack` and :meth:`Message.nack`.
        :param join: join the channel when opened and leave it when closed.
        :param filter: the messages for this client, see :meth:`join`; all its consumers of the
            channel share the filter.
        :param window: how many messages may be unanswered at a time; this and the following are
            terms of the channel, see :meth:`Client.join`.
        :param ack_timeout_s: how long this client may take to answer.
        :param returns: what happens to unanswered messages when the consumer is closed.
        :param priority: 0..127; if messages go to one consumer each, the highest are served first.
        :param exclusive: if messages go to one consumer each, this client gets all of them.
        :param credit: how many messages may be sent until the next :meth:`grant`.
        :param tells_lapsed: see :attr:`Message.lapsed`; messages that lapse before the program has
            read them are dropped.
        :raises LocalProtocolError: for another value of ``acknowledge``, or terms that are out of
            range.
        """
        wanted = None
        if filter is not None or filter_language is not None:
            wanted = requests.join(channel, filter, filter_language)
        terms = terms_headers(
            window, credit, ack_timeout_s, returns, priority, exclusive, tells_lapsed
        )
        return Consumer(self._port, channel, queue_id, acknowledge, join, wanted, terms)

    def temporary_queue(
        self, prefix: str = "temporary", *, acknowledge: AcknowledgeMode = "auto"
    ) -> TemporaryQueue:
        """Return a queue for this client only, with a new name, for ``async with``; see
        :class:`TemporaryQueue`.

        It needs the rights to create, join and remove channels whose names begin with the prefix.

        :param prefix: the beginning of the channel's name.
        :param acknowledge: as in :meth:`consume`.
        :raises LocalProtocolError: for a prefix that no channel's name can begin with.
        """
        name = check_channel(f"{prefix}.{self._port.session.new_message_id()}")
        return TemporaryQueue(self._port, name, acknowledge)

    def pull(
        self,
        channel: str,
        queue_id: int,
        count: int,
        *,
        order: str = "fifo",
        clear: PullClear | str = PullClear.NONE,
        info: bool = False,
        timeout_s: float | None = None,
    ) -> Pull:
        """Return up to ``count`` messages of a pull queue, as an async iterator; see :class:`Pull`.

        Join the channel first (F105).

        :param order: ``fifo``, or ``lifo`` for the newest first; high priority before both (F107).
        :param clear: the waiting messages to remove afterwards: ``none``, ``all``,
            ``High-Priority`` or ``Default-Priority`` (F110).
        :param info: add the headers Priority-Messages and Messages, the remaining numbers, to each
            message.
        :param timeout_s: seconds without a message after which the pull fails;
            ``pull_timeout_s`` of the limits if None.
        :raises LocalProtocolError: if an argument is out of range.
        """
        request = PullRequest(channel, queue_id, count, order, clear, info)
        return Pull(
            self._port, request, time_limit(timeout_s, self._port.machine.limits.pull_timeout_s)
        )

    async def read_cache(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> bytes | None:
        """Return the payload of a cache queue's message; None if the queue is empty (F112).

        :raises PullRefused: if the queue is not a cache queue, or does not exist.
        :raises OperationFailed: with 401 if the client has not joined the channel.
        """
        request = PullRequest(channel, queue_id)
        try:
            pending = await self._session.read_cache(request, timeout_s)
        except OperationFailed as error:
            if error.code == RESULT_NOT_FOUND:
                return None
            raise
        assert pending.answer is not None, "a Response has settled it"
        return pending.answer.payload

    def unclaimed(self) -> Unclaimed:
        """Return the messages that no other code of the program receives, as an async iterator of
        events.

        These are direct messages and events without an open iterator, messages of routers and of
        user types, and refusals of messages that no call waited for.  The client keeps up to
        ``unclaimed_messages`` and ``unclaimed_bytes`` of them; when it is full, further ones are
        dropped and counted (:meth:`statistics`).
        """
        if self._unclaimed is None:
            self._unclaimed = Unclaimed(self._port)
        return self._unclaimed
