"""Messages of queues: pushing, consuming, pulling."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Final

from tmqp.constants import RESULT_NOT_FOUND, PullClear
from tmqp.errors import LocalProtocolError
from tmqp_client._core.pending import time_limit
from tmqp_client._core.requests import Headers, Payload, PullRequest, payload_bytes, to_pairs
from tmqp_client._io.batch import Batch
from tmqp_client._port import Operations, Port
from tmqp_client._report import BatchReport
from tmqp_client.consumer import AcknowledgeMode, Consumer
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
    ) -> str:
        """Push a message into a queue; return its id.

        :param payload: bytes, or text that is sent as UTF-8.
        :param wait: return when the acknowledge has come.  When that is depends on the queue's
            delivery handler: after receiving, saving, delivering or consuming it, or never (F77).
            Without waiting a refusal is found in :meth:`unclaimed` only.
        :param message_id: for a message that may be pushed again; a new id if None.
        :param nowait: raise :class:`WouldBlock` when it cannot be queued at once.
        :raises NegativeAcknowledge: when the queue or its consumer refuses it.
        :raises OperationFailed: when the server does: 404, 401, 482.
        :return: its id; empty when it was dropped (``when_full``).
        """
        data = payload_bytes(payload)
        if type(data) is not bytes:
            headers = with_parts(payload, headers)
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
    ) -> BatchReport:
        """Push many messages, in order, up to ``in_flight`` of them waiting for their acknowledge;
        return when all have theirs.

        :param wait: as :meth:`push`; without it this returns when all are on their way.
        :param timeout_s: for each message.
        :raises BatchFailed: when one or more were not confirmed, because they were refused, timed
            out, or the connection was lost; its report says which.  The rest was sent all the same,
            as far as there was a connection.
        """
        if in_flight < 1:
            raise LocalProtocolError(f"in_flight is at least 1, got {in_flight!r}")
        pairs = tuple(to_pairs(headers))
        batch = Batch(in_flight)
        session = self._session

        async def push_one(payload: Payload) -> None:
            data = payload_bytes(payload)
            headers = pairs if type(data) is bytes else with_parts(payload, pairs)
            if not wait:
                batch.posted(
                    await session.publish(
                        channel, queue_id, data, headers, high_priority, None, timeout_s
                    )
                )
                return
            if batch.full:
                await batch.room()
            batch.add(
                await session.begin_push(
                    channel, queue_id, data, headers, high_priority, timeout_s, batch
                )
            )

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
    ) -> Consumer:
        """Messages of a queue, or of all queues of a channel, as an async iterator; see
        :class:`Consumer`.

        :param acknowledge: ``auto`` acknowledges a message when the loop asks for the next one or
            its block is left in order, and negatively (reason ``error``) when an exception leaves
            it; ``manual`` leaves it to :meth:`Message.ack` and :meth:`Message.nack`.
        :param join: join the channel when opened and leave it when closed.
        :raises LocalProtocolError: for another ``acknowledge``.
        """
        return Consumer(self._port, channel, queue_id, acknowledge, join)

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
