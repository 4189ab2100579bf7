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
from tmqp.hello import ConnectionInformation
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client._core import requests
from tmqp_client._core.ids import IdSource, new_client_id
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.pending import time_limit
from tmqp_client._core.requests import Headers, Payload, PullRequest, Request, payload_bytes
from tmqp_client._io.batch import Batch
from tmqp_client._io.gate import WhenFull
from tmqp_client._io.supervisor import Supervisor
from tmqp_client._listening import Listening
from tmqp_client._report import BatchReport
from tmqp_client.binding import Converter, JsonConverter
from tmqp_client.config import ClientLimits
from tmqp_client.connection_events import ConnectionEvents, ConnectionState
from tmqp_client.consumer import AcknowledgeMode, Consumer
from tmqp_client.errors import (
    BatchFailed,
    ClientClosed,
    ClientError,
    OperationFailed,
)
from tmqp_client.handling import Handling
from tmqp_client.operations.groups import Groups
from tmqp_client.operations.managing import Managing
from tmqp_client.operations.nodes import Nodes
from tmqp_client.operations.routers import Routers
from tmqp_client.operations.talking import Talking
from tmqp_client.operations.transactions import Transactions
from tmqp_client.parts import with_parts
from tmqp_client.pull import Pull
from tmqp_client.reconnect import ReconnectPolicy
from tmqp_client.session import Session
from tmqp_client.statistics import ClientStatistics
from tmqp_client.unclaimed import Unclaimed

__all__ = ["Client", "connect"]

_BATCH_IN_FLIGHT: Final = 1_000
_RECONNECT: Final = ReconnectPolicy()


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
    :param reconnect: how to come back when the connection is lost; None for not at all.
    :param when_full: what becomes of a message that would have to wait to be sent, because too much
        is unanswered, unsent, or waiting for a connection: ``block`` lets it wait; ``drop`` drops
        and counts it when nobody waits for its answer, else raises; ``raise`` raises
        :class:`WouldBlock`.
    :param linger_s: how long closing waits, at most, until everything is sent when there is no
        connection: for ever if None, not at all if 0.
    :param converter: between your classes and payloads; :class:`JsonConverter` if None.
    :raises LocalProtocolError: when an address or a property cannot be read or sent.
    """
    given = [address] if isinstance(address, (str, Address)) else list(address)
    addresses = [parse_address(item) if isinstance(item, str) else item for item in given]
    if not addresses:
        raise LocalProtocolError("an address to connect to is missing")
    information = ConnectionInformation(client_id or new_client_id(), name, type, token, properties)
    information.encode()  # what cannot be sent is best said here
    return Client(
        addresses,
        information,
        limits or ClientLimits(),
        ssl_context,
        reconnect,
        when_full,
        linger_s,
        converter,
    )


class Client(Talking, Routers, Managing, Nodes, Handling, Groups, Transactions):
    """What talks to a server; made by :func:`connect` and used in ``async with``, once.

    When its connection is lost it makes another one, to any of its addresses, and goes on where it
    was: channels joined and events subscribed to are so again, loops over consumers continue,
    pushes that are not confirmed are sent again under their ids, and what is pushed or asked
    meanwhile goes out then.  Messages delivered before and not answered yet cannot be answered any
    more; the server delivers them again (:attr:`Message.stale`).  An operation or a request that
    was under way raises :class:`ConnectionLost`, because whether it was carried out is not known.

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
        reconnect: ReconnectPolicy | None,
        when_full: WhenFull,
        linger_s: float | None,
        converter: Converter | None,
    ) -> None:
        if when_full not in ("block", "drop", "raise"):
            raise LocalProtocolError(f"when_full is block, drop or raise, got {when_full!r}")
        if linger_s is not None and not linger_s >= 0:
            raise LocalProtocolError(f"linger_s is a number of seconds or None, got {linger_s!r}")
        self.addresses = tuple(addresses)
        self.limits = limits
        self.linger_s = linger_s
        self._machine = ClientMachine(
            information, limits, IdSource(), 0 if reconnect is None else reconnect.max_sends
        )
        self._machine.repeat_operations = reconnect is not None and reconnect.repeat_operations
        session = Session(self._machine, when_full)
        self._supervisor = Supervisor(
            self._machine, session, self.addresses, information, ssl_context, reconnect
        )
        self._only_session = session
        self._tasks: anyio.abc.TaskGroup | None = None
        self._opened: Session | None = None
        self._joined: set[str] = set()
        self._consumers: dict[Consumer, None] = {}
        self._listeners: dict[Listening, None] = {}
        self._unclaimed: Unclaimed | None = None
        self._converter = converter
        self._handlers = []
        self._responders = {}

    @property
    def client_id(self) -> str:
        """The id this client goes by; the server may have given another than it was asked (F31)."""
        return self._machine.client_id

    @property
    def connected(self) -> bool:
        """Operations can be sent now."""
        return self._machine.accepted

    @property
    def converter(self) -> Converter:
        """What turns a program's classes into payloads and back.

        :raises LocalProtocolError: when none was given, and there is no cattrs for the usual one.
        """
        if self._converter is None:
            self._converter = JsonConverter()
        return self._converter

    @property
    def state(self) -> ConnectionState:
        """What the client is doing about its connection now."""
        state = self._supervisor.state
        if state != ConnectionState.CONNECTED or self._machine.accepted:
            return state
        over = self._machine.over is not None
        return ConnectionState.CLOSED if over else ConnectionState.RECONNECTING

    @property
    def address(self) -> Address | None:
        """Where the connection goes, or went last; None before the first."""
        return self._supervisor.address

    def connection_events(self) -> ConnectionEvents:
        """Losses of the connection and new ones, from now on, as an async iterator."""
        return ConnectionEvents(self._supervisor.watchers)

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
            connections=counters.connections,
            resent=counters.resent,
            unsent=counters.unsent,
            buffered=len(self._machine.outbox),
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
            await self._supervisor.open(self._tasks)
            self._opened = self._only_session
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
                await self._session.aclose(self.linger_s)
            else:
                self._session.hang_up()
        except BaseException as error:
            await self._leave(self._tasks, error)
            raise
        return await self._leave(self._tasks, exc)

    async def aclose(self) -> None:
        """Close now, from any task: whoever waits gets :class:`ClientClosed`, and loops over
        consumers end.  Leaving the block does this by itself; closing twice does nothing.

        What waits for a connection is sent if there is one within ``linger_s`` seconds.
        """
        if self._opened is None:
            return
        for consumer in list(self._consumers):
            consumer._shut(None)
        for listener in list(self._listeners):
            listener._shut()
        try:
            await self._opened.aclose(self.linger_s)
        finally:
            self._supervisor.close()

    async def _leave(self, tasks: anyio.abc.TaskGroup, error: BaseException | None) -> bool:
        """End the tasks; return whether ``error`` was theirs to swallow.

        Only a cancellation is shown to the task group: it would wrap any other error in a group,
        and whoever wrote ``except OperationFailed`` around the block would not catch it.
        """
        tasks.cancel_scope.cancel()
        self._supervisor.close()
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
            requests.create_channel(name, options), exist_ok=exist_ok, timeout_s=timeout_s
        )

    async def remove_channel(self, name: str, *, timeout_s: float | None = None) -> None:
        """Remove a channel with its queues.

        :raises OperationFailed: when the server refuses: 404, 401 ...
        """
        await self._session.ask(requests.remove_channel(name), timeout_s)

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
        request = requests.create_queue(
            channel, queue_id, options, status, tag, delivery_handler, wait_for_acknowledge, headers
        )
        return await self._create(request, exist_ok=exist_ok, timeout_s=timeout_s)

    async def remove_queue(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> None:
        """Remove a queue with its messages.

        :raises OperationFailed: when the server refuses: 404, 401 ...
        """
        await self._session.ask(requests.remove_queue(channel, queue_id), timeout_s)

    async def join(self, channel: str, *, timeout_s: float | None = None) -> None:
        """Join a channel: its queues deliver to this client from now on (F48).

        :meth:`consume` joins by itself; who joins before keeps what comes meanwhile, within
        bounds, for the consumers to come.  Joining twice is no error.

        :raises OperationFailed: when the server refuses: 404, 401, 482.
        """
        await self._session.ask(requests.join(channel), timeout_s)
        self._joined.add(channel.lower())

    async def leave(self, channel: str, *, timeout_s: float | None = None) -> None:
        """Leave a channel.

        :raises OperationFailed: with 404 when it was not joined (F49).
        """
        await self._session.ask(requests.leave(channel), timeout_s)
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
        pairs = tuple(requests.to_pairs(headers))
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
