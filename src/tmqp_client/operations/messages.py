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
from tmqp_client._core.pending import time_limit
from tmqp_client._core.requests import (
    Headers,
    Payload,
    PullRequest,
    Request,
    check_channel,
    check_queue_id,
    payload_bytes,
    terms_headers,
    to_pairs,
)
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
    """What :class:`tmqp_client.Client` can do with the messages of queues."""

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
        :param wait: return when the acknowledge has come.  When that is depends on the queue's
            delivery handler: after receiving, saving, delivering or consuming it, or never (F77).
            Without waiting a refusal is found in :meth:`unclaimed` only.
        :param message_id: for a message that may be pushed again; a new id if None.
        :param nowait: raise :class:`WouldBlock` when it cannot be queued at once.
        :param delay_s: deliver it no sooner than after so many seconds.
        :param deliver_at: deliver it no sooner than at this time, by the server's clock.
        :param expires_s: drop it if it still waits after so many seconds, instead of the queue's
            ``message_timeout_ms``; they count from the push, a delay included.
        :param key: messages of the same key belong together, where the queue's option
            ``group_keys`` says what that means.
        :param room_s: if the queue is full, wait so many seconds for room; the server reads nothing
            more from this client meanwhile, and answers 482 or 503 when they are over.
        :param priority: 0..9, of which 5 and more have high priority, too; each goes before the
            lower ones where the queue's option ``priorities`` is ``ten``.
        :raises NegativeAcknowledge: when the queue or its consumer refuses it.
        :raises OperationFailed: when the server does: 404, 401, 482.
        :return: its id; empty when it was dropped (``when_full``).
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
        """Push a message as :meth:`push` does, and return how many consumers it went to at once.

        That is 0 when it waits for one, and None when the server does not count.
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
        """Push many messages, in order, up to ``in_flight`` of them waiting for their acknowledge;
        return when all have theirs.

        :param wait: as :meth:`push`; else this returns when all are on their way.
        :param timeout_s: for each message, as is ``room_s``.
        :raises BatchFailed: when one or more were not confirmed: refused, timed out, or the
            connection was lost; its report says which.  The rest was sent all the same.
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
        """Messages and acknowledges that the server does all together, or not at all.

        An extension::

            async with client.batch() as batch:
                batch.push("orders", 2, result)
                batch.ack(message)

        All of it is done when the block is left; an exception in the block sends nothing.  See
        :class:`Batch` for what a lost connection means.

        :raises OperationFailed: when the block is left and the server refuses: 401, 404 for a
            message that is not this client's to answer for any more (it comes again), 406, 482 when
            a queue or the batch is full, 501 in a cluster, 503 when it cannot be saved now.
            Nothing was done then, and the messages are not answered.
        """
        return Batch(self._port, timeout_s)

    async def cancel_message(
        self, channel: str, queue_id: int, message_id: str, *, timeout_s: float | None = None
    ) -> bool:
        """Remove a deferred message that is not due yet, by the id that :meth:`push` returned.

        :return: whether it was there; False when it is due, was cancelled before, or never came.
            All messages with this id are removed: a push that was repeated may have come twice.
        :raises OperationFailed: when the server refuses (401), or could not write it down (503).
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
        """Remove a message that waits in a queue, by its id, wherever it stands.

        A deferred one is for :meth:`cancel_message`.  Of several with this id the first goes.

        :return: whether one was there; False when it is in flight, was consumed, or never came.
        :raises OperationFailed: when the server refuses (401, or 403 where only the channel's owner
            consumes), when too many look into queues, or when it could not be written down (503).
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
        """Ask; False when the server says that it is not there."""
        try:
            await self._session.ask(request, timeout_s)
        except OperationFailed as error:
            if error.code == RESULT_NOT_FOUND:
                return False
            raise
        return True

    async def ping(self, *, timeout_s: float | None = None) -> float:
        """Send a ping; return the seconds until its pong came (F37)."""
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
        """Messages of a queue, or of all queues of a channel, as an async iterator; see
        :class:`Consumer`.

        :param acknowledge: ``auto`` acknowledges a message when the loop asks for the next one or
            its block is left in order, and negatively (reason ``error``) when an exception leaves
            it; ``manual`` leaves it to :meth:`Message.ack` and :meth:`Message.nack`.
        :param join: join the channel when opened and leave it when closed.
        :param filter: which messages this client wants, see :meth:`join`; all its consumers of the
            channel share the filter.
        :param window: how many messages may be unanswered at a time; this and the following are
            terms of the channel, see :meth:`Client.join`.
        :param ack_timeout_s: how long this client may take to answer.
        :param returns: what becomes of messages without an answer when the consumer is closed.
        :param priority: 0..127; where a message goes to one consumer, the highest are first.
        :param exclusive: where a message goes to one consumer, this client gets all.
        :param credit: how many messages may be sent until :meth:`grant` says otherwise.
        :param tells_lapsed: see :attr:`Message.lapsed`; what lapses before the program has taken
            it is not handed out.
        :raises LocalProtocolError: for another ``acknowledge``, or terms that make no sense.
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
        """A queue of this client alone, under a new name, to be used with ``async with``; see
        :class:`TemporaryQueue`.

        It needs the rights to create, join and remove channels whose names begin with the prefix.

        :param prefix: what the channel's name begins with.
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
        """Up to ``count`` messages of a pull queue, as an async iterator; see :class:`Pull`.

        The channel has to be joined before (F105).

        :param order: ``fifo``, or ``lifo`` for the newest first; high priority before both (F107).
        :param clear: what of the rest to remove afterwards: ``none``, ``all``, ``High-Priority``
            or ``Default-Priority`` (F110).
        :param info: let each message's headers Priority-Messages and Messages tell what is left.
        :param timeout_s: seconds without a message after which the pull is given up;
            ``pull_timeout_s`` of the limits if None.
        :raises LocalProtocolError: for arguments that make no sense.
        """
        request = PullRequest(channel, queue_id, count, order, clear, info)
        return Pull(
            self._port, request, time_limit(timeout_s, self._port.machine.limits.pull_timeout_s)
        )

    async def read_cache(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> bytes | None:
        """The payload of a cache queue's message; None when it holds none (F112).

        :raises PullRefused: when the queue is no cache queue, or there is none.
        :raises OperationFailed: with 401 when the channel was not joined.
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
        """What came for nobody in particular, as an async iterator of events.

        Direct messages and events for which no iterator is open, messages of routers and of user
        types, refusals of messages that nobody waited for.  It holds ``unclaimed_messages`` and
        ``unclaimed_bytes`` of them; what comes when it is full is dropped and counted
        (:meth:`statistics`).
        """
        if self._unclaimed is None:
            self._unclaimed = Unclaimed(self._port)
        return self._unclaimed
