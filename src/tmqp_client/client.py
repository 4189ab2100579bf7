"""Owns the client: connecting, and every operation as a typed method."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.abc

from tmqp.address import Address, parse_address
from tmqp.constants import RESULT_DUPLICATE, RESULT_NOT_FOUND, PullClear, QueueStatus
from tmqp.errors import LocalProtocolError
from tmqp.events import MessageReceived
from tmqp.hello import ConnectionInformation
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client import _requests
from tmqp_client._batch import Batch
from tmqp_client._ids import IdSource, new_client_id
from tmqp_client._listening import Listening
from tmqp_client._machine import ClientMachine
from tmqp_client._nodes import Nodes
from tmqp_client._pending import time_limit
from tmqp_client._reading import Reading
from tmqp_client._report import BatchReport
from tmqp_client._requests import Headers, Payload, PullRequest, Request, payload_bytes
from tmqp_client._routers import Routers
from tmqp_client._stream import InboxReader
from tmqp_client._talking import Talking
from tmqp_client._transport import open_transport
from tmqp_client.config import ClientLimits
from tmqp_client.consumer import AcknowledgeMode, Consumer
from tmqp_client.errors import (
    BatchFailed,
    ClientClosed,
    ClientError,
    ConnectFailed,
    ConnectRefused,
    OperationFailed,
)
from tmqp_client.pull import Pull
from tmqp_client.session import Session
from tmqp_client.statistics import ClientStatistics

__all__ = ["Client", "Unclaimed", "connect"]

_BATCH_IN_FLIGHT: Final = 1_000


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
) -> Client:
    """Return a client that connects when it is entered.

    ::

        async with connect("tmq://127.0.0.1:2622", name="shop") as client:
            await client.push("orders", 1, b"one pizza")

    :param address: ``tmq://host:port``, ``tmqs://host:port`` (TLS), ``unix:/path``, or several, of
        which the first that answers is taken.
    :param client_id: unique on the server; random if None (F30).
    :param name: not unique; others may address direct messages to it, or to ``type``.
    :param token: what the server's authenticator checks.
    :param properties: further properties for the server's own use.
    :param limits: bounds and time limits; :class:`ClientLimits` documents each default.
    :param ssl_context: for ``tmqs://``; the system's authorities if None.
    :raises LocalProtocolError: when an address or a property cannot be read or sent.
    """
    given = [address] if isinstance(address, (str, Address)) else list(address)
    addresses = [parse_address(item) if isinstance(item, str) else item for item in given]
    if not addresses:
        raise LocalProtocolError("an address to connect to is missing")
    information = ConnectionInformation(client_id or new_client_id(), name, type, token, properties)
    information.encode()  # what cannot be sent is best said here
    return Client(addresses, information, limits or ClientLimits(), ssl_context)


class Client(Talking, Routers, Nodes, Reading):
    """A connection to a server; made by :func:`connect` and used in ``async with``, once.

    Leaving the block closes it: what was sent still goes out, consumers answer what they hold, the
    server is told.  An exception that leaves the block leaves it unchanged.

    Every operation raises what :mod:`tmqp_client.errors` lists: :class:`ConnectionLost` when the
    connection ends, before or while it waits, :class:`ClientClosed` when this side has closed it,
    :class:`OperationTimeout` when no answer comes in ``timeout_s`` seconds (default: see
    :class:`ClientLimits`), ``LocalProtocolError`` when an argument cannot be sent.  Cancelling one
    that waits is safe; whether the server has carried it out is then not known.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        information: ConnectionInformation,
        limits: ClientLimits,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self.addresses = tuple(addresses)
        self.limits = limits
        self._information = information
        self._ssl_context = ssl_context
        self._machine = ClientMachine(information, limits, IdSource())
        self._tasks: anyio.abc.TaskGroup | None = None
        self._opened: Session | None = None
        self._joined: set[str] = set()
        self._consumers: dict[Consumer, None] = {}
        self._listeners: dict[Listening, None] = {}
        self._unclaimed: Unclaimed | None = None

    @property
    def client_id(self) -> str:
        """The id this client goes by; the server may have given another than it was asked (F31)."""
        return self._machine.client_id

    @property
    def connected(self) -> bool:
        """Operations can be sent now."""
        return self._machine.accepted

    @property
    def _session(self) -> Session:
        if self._opened is None:
            raise ClientClosed("the client is not connected: use it in 'async with'")
        return self._opened

    def statistics(self) -> ClientStatistics:
        """Counts since the client was opened, and what is under way now."""
        counters = self._machine.counters
        return ClientStatistics(
            pushed=counters.pushed,
            confirmed=counters.confirmed,
            refused=counters.refused,
            timed_out=counters.timed_out,
            delivered=counters.delivered,
            acknowledged=counters.acknowledged,
            unmatched_answers=counters.unmatched_answers,
            unclaimed=counters.unclaimed,
            dropped=counters.dropped + self._machine.board.dropped,
            directs=self._machine.board.directs,
            events=self._machine.board.events,
            customs=self._machine.board.customs,
            pauses=counters.pauses,
            outstanding=self._machine.outstanding,
            backlog_bytes=0 if self._opened is None else self._opened.backlog_bytes,
        )

    # -- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Connect.

        :raises ConnectRefused: when the server does not accept this client.
        :raises ConnectFailed: when no address answers as a server of this protocol.
        """
        if self._tasks is not None:
            raise ClientClosed("a client is opened once; connect() makes another")
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        try:
            self._opened = await self._open(self._tasks)
        except BaseException as error:
            await self._leave(self._tasks, error)
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        assert self._tasks is not None, "it was entered"
        for consumer in list(self._consumers):
            consumer._shut(exc)
        for listener in list(self._listeners):
            listener._shut()
        try:
            if exc is None or isinstance(exc, Exception):
                await self._session.aclose()
            else:
                self._session.hang_up()
        except BaseException as error:
            await self._leave(self._tasks, error)
            raise
        return await self._leave(self._tasks, exc)

    async def aclose(self) -> None:
        """Close now, from any task: whoever waits gets :class:`ClientClosed`, and loops over
        consumers end.  Leaving the block does this by itself; closing twice does nothing."""
        if self._opened is None:
            return
        for consumer in list(self._consumers):
            consumer._shut(None)
        for listener in list(self._listeners):
            listener._shut()
        await self._opened.aclose()

    async def _open(self, tasks: anyio.abc.TaskGroup) -> Session:
        """Try one address after the other."""
        failures: list[ConnectFailed] = []
        for address in self.addresses:
            try:
                transport = await open_transport(
                    address, self.limits.connect_timeout_s, self._ssl_context
                )
            except ConnectFailed as error:
                failures.append(error)
                continue
            self._information.path = address.path
            session = Session(self._machine, transport)
            lost = await session.open(tasks)
            if lost is None:
                return session
            if lost.reason == "refused":
                failures.append(ConnectRefused(str(address), lost.code))
            else:
                failures.append(ConnectFailed(str(address), lost.message))
        if len(failures) == 1:
            raise failures[0]
        raise ConnectFailed(
            "any address", "; ".join(f"{failure.address}: {failure.reason}" for failure in failures)
        )

    @staticmethod
    async def _leave(tasks: anyio.abc.TaskGroup, error: BaseException | None) -> bool:
        """End the tasks; return whether ``error`` was theirs to swallow.

        Only a cancellation is shown to the task group: it would wrap any other error in a group,
        and whoever wrote ``except OperationFailed`` around the block would not catch it.
        """
        tasks.cancel_scope.cancel()
        if isinstance(error, anyio.get_cancelled_exc_class()):
            return bool(await tasks.__aexit__(type(error), error, error.__traceback__))
        await tasks.__aexit__(None, None, None)
        return False

    # -- channels and queues --------------------------------------------------------------------

    async def create_channel(
        self,
        name: str,
        options: ChannelOptions | None = None,
        *,
        exist_ok: bool = True,
        timeout_s: float | None = None,
    ) -> bool:
        """Create a channel; return False if it was there already.

        The original server does not answer at all when the channel exists (F50): there this times
        out.

        :raises OperationFailed: when the server refuses; with 481 for one that exists if not
            ``exist_ok``.
        """
        return await self._create(
            _requests.create_channel(name, options), exist_ok=exist_ok, timeout_s=timeout_s
        )

    async def remove_channel(self, name: str, *, timeout_s: float | None = None) -> None:
        """Remove a channel with its queues.

        :raises OperationFailed: when the server refuses: 404, 401 ...
        """
        await self._session.ask(_requests.remove_channel(name), timeout_s)

    async def create_queue(
        self,
        channel: str,
        queue_id: int,
        options: QueueOptions | None = None,
        *,
        status: QueueStatus | str | None = None,
        tag: str | None = None,
        delivery_handler: str | None = None,
        wait_for_acknowledge: bool | None = None,
        headers: Headers = (),
        exist_ok: bool = True,
        timeout_s: float | None = None,
    ) -> bool:
        """Create a queue, and its channel if that is missing; return False if it was there already.

        :param options: sent as the JSON body, which the original server applies only where it
            creates the channel too (F54); what has its own argument here applies everywhere.
        :param status: a :class:`tmqp.QueueStatus` or its word, ``round-robin`` for one.
        :param delivery_handler: the name of one that the server knows.
        :param headers: more headers, for the server's delivery handlers.
        :raises OperationFailed: when the server refuses; with 481 for one that exists if not
            ``exist_ok``.
        """
        request = _requests.create_queue(
            channel, queue_id, options, status, tag, delivery_handler, wait_for_acknowledge, headers
        )
        return await self._create(request, exist_ok=exist_ok, timeout_s=timeout_s)

    async def remove_queue(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> None:
        """Remove a queue with its messages.

        :raises OperationFailed: when the server refuses: 404, 401 ...
        """
        await self._session.ask(_requests.remove_queue(channel, queue_id), timeout_s)

    async def join(self, channel: str, *, timeout_s: float | None = None) -> None:
        """Join a channel: its queues deliver to this client from now on (F48).

        :meth:`consume` joins by itself; who joins before keeps what comes meanwhile, within
        bounds, for the consumers to come.  Joining twice is no error.

        :raises OperationFailed: when the server refuses: 404, 401, 482.
        """
        await self._session.ask(_requests.join(channel), timeout_s)
        self._joined.add(channel.lower())

    async def leave(self, channel: str, *, timeout_s: float | None = None) -> None:
        """Leave a channel.

        :raises OperationFailed: with 404 when it was not joined (F49).
        """
        await self._session.ask(_requests.leave(channel), timeout_s)
        self._joined.discard(channel.lower())

    async def _create(self, request: Request, *, exist_ok: bool, timeout_s: float | None) -> bool:
        try:
            await self._session.ask(request, timeout_s)
        except OperationFailed as error:
            if error.code == RESULT_DUPLICATE and exist_ok:
                return False
            raise
        return True

    # -- messages -------------------------------------------------------------------------------

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
    ) -> str:
        """Push a message into a queue; return its id.

        :param payload: bytes, or text that is sent as UTF-8.
        :param wait: return when the acknowledge has come.  When that is depends on the queue's
            delivery handler: after receiving, saving, delivering or consuming it, or never (F77).
            Without waiting a refusal is found in :meth:`unclaimed` only.
        :param message_id: for a message that may be pushed again; a new id if None.
        :raises NegativeAcknowledge: when the queue or its consumer refuses it.
        :raises OperationFailed: when the server does: 404, 401, 482.
        """
        pending = await self._session.push(
            channel,
            queue_id,
            payload_bytes(payload),
            headers,
            high_priority,
            message_id,
            wait,
            timeout_s,
        )
        return pending.message_id

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
        pairs = tuple(_requests.to_pairs(headers))
        batch = Batch(in_flight)
        session = self._session

        async def push_one(payload: Payload) -> None:
            if wait:
                await batch.room()
            pending = await session.push(
                channel,
                queue_id,
                payload_bytes(payload),
                pairs,
                high_priority,
                None,
                wait,
                timeout_s,
                batch,
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
        return Consumer(self, channel, queue_id, acknowledge, join)

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
        return Pull(self, request, time_limit(timeout_s, self.limits.pull_timeout_s))

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
            self._unclaimed = Unclaimed(self)
        return self._unclaimed


class Unclaimed:
    """An async iterator of :class:`tmqp.MessageReceived` events; ends when the client closes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reader = InboxReader(client._machine.unclaimed)

    def __aiter__(self) -> Unclaimed:
        return self

    async def __anext__(self) -> MessageReceived:
        """The next event.

        :raises ConnectionLost: when there is none and the connection has ended.
        """
        session = self._client._session
        event = await self._reader.take() if session.lost is None else self._reader.take_now()
        if event is not None:
            return event
        if session.lost is None or session.lost.reason == "local":
            raise StopAsyncIteration
        raise session.lost.error()
