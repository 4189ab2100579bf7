"""The client: connecting, and every operation as a typed method."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import anyio
import anyio.abc

from tmqp.address import Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp.hello import ConnectionInformation
from tmqp_client._core.ids import IdSource
from tmqp_client._core.machine import ClientMachine
from tmqp_client._io.admission import WhenFull
from tmqp_client._io.line import Line
from tmqp_client._io.supervisor import Supervisor
from tmqp_client._port import Port
from tmqp_client.binding import Converter
from tmqp_client.config import ClientLimits
from tmqp_client.connection_events import ConnectionEvents, ConnectionState
from tmqp_client.errors import ClientClosed
from tmqp_client.handling import Handling
from tmqp_client.operations.browsing import Browsing
from tmqp_client.operations.cells import Cells
from tmqp_client.operations.channels import Channels
from tmqp_client.operations.feeding import Feeding
from tmqp_client.operations.groups import Groups
from tmqp_client.operations.managing import Managing
from tmqp_client.operations.messages import Messages
from tmqp_client.operations.nodes import Nodes
from tmqp_client.operations.routers import Routers
from tmqp_client.operations.talking import Talking
from tmqp_client.operations.transactions import Transactions
from tmqp_client.reconnect import ReconnectPolicy
from tmqp_client.session import Session
from tmqp_client.statistics import ClientStatistics

if TYPE_CHECKING:
    import ssl

__all__ = ["Client", "connect"]

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
        which the first that accepts the client is used; a standby of a group redirects the client
        to the leader.
    :param client_id: unique on the server; random if None (F30).
    :param name: need not be unique; other clients may address direct messages to it, or to
        ``type``.
    :param token: the secret that the server checks.
    :param properties: further properties, for code of the server's operator.
    :param limits: limits and timeouts; :class:`ClientLimits` documents each default.
    :param ssl_context: for ``tmqs://``; a context that trusts the system's authorities if None.
    :param reconnect: how to reconnect when the connection is lost; None means not at all,
        ``FAIL_OVER`` is for a group of servers that replace each other.
    :param when_full: what to do with a message that would have to wait, because too many are
        unanswered, unsent, or waiting for a connection: ``block`` lets it wait; ``raise`` raises
        :class:`WouldBlock`; ``drop`` drops and counts it if no call waits for its answer, and
        otherwise raises.
    :param linger_s: how many seconds closing waits at most for a connection to send everything:
        without a limit if None, not at all if 0.
    :param converter: converts your classes to payloads and back; :class:`JsonConverter` if None.
    :raises LocalProtocolError: if an address is invalid or a property cannot be sent.
    """
    given = [address] if isinstance(address, (str, Address)) else list(address)
    addresses = [parse_address(item) if isinstance(item, str) else item for item in given]
    if not addresses:
        raise LocalProtocolError("an address to connect to is missing")
    information = ConnectionInformation(
        client_id or secrets.token_hex(16), name, type, token, properties
    )
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


class Client(
    Channels,
    Feeding,
    Messages,
    Talking,
    Routers,
    Managing,
    Nodes,
    Groups,
    Browsing,
    Transactions,
    Handling,
):
    """A client of a server; create it with :func:`connect` and use it in ``async with``, once.

    If the connection is lost, the client reconnects to any of its addresses and continues: it
    restores joined channels and subscriptions, loops over consumers continue, it repeats
    unconfirmed pushes under their ids, and sends pushes and requests made meanwhile.  Messages that
    were delivered before and are unanswered can no longer be answered; the server redelivers them
    (:attr:`Message.stale`).  An operation or a request in progress raises :class:`ConnectionLost`,
    because its result is unknown.

    Leaving the block closes the client: it sends queued messages, lets consumers answer the
    messages that they hold, and sends Terminate to the server.  Exceptions of the block propagate
    unchanged.

    Every operation raises what :mod:`tmqp_client.errors` lists: :class:`ConnectionLost` when the
    connection ends, before or while it waits, :class:`ClientClosed` when the client is closed,
    :class:`OperationTimeout` when no answer arrives within ``timeout_s`` seconds (default: see
    :class:`ClientLimits`), ``LocalProtocolError`` when an argument cannot be sent.  Cancelling a
    waiting operation is safe; whether the server has executed it is then unknown.
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
            raise LocalProtocolError(f"when_full must be block, drop or raise, not {when_full!r}")
        if linger_s is not None and not linger_s >= 0:
            raise LocalProtocolError(f"linger_s must be 0 or more, or None, got {linger_s!r}")
        self.addresses = tuple(addresses)
        if reconnect is not None:
            limits = limits.hurried(reconnect.attempt_timeout_s, reconnect.silence_s)
        self.limits = limits
        self.linger_s = linger_s
        self._machine = ClientMachine(
            information,
            limits,
            IdSource(secrets.token_hex),
            0 if reconnect is None else reconnect.max_sends,
        )
        self._machine.repeat_operations = reconnect is not None and reconnect.repeat_operations
        line = Line(self._machine, when_full)
        super().__init__(Port(self._machine, Session(self._machine, line), converter))
        self._line = line
        self._supervisor = Supervisor(
            self._machine, line, self.addresses, information, ssl_context, reconnect
        )
        self._tasks: anyio.abc.TaskGroup | None = None

    @property
    def client_id(self) -> str:
        """The id of this client; the server may have assigned another one than requested (F31)."""
        return self._machine.client_id

    @property
    def connected(self) -> bool:
        """Whether operations can be sent now."""
        return self._machine.accepted

    @property
    def state(self) -> ConnectionState:
        """The state of the client's connection."""
        state = self._supervisor.state
        if state != ConnectionState.CONNECTED or self._machine.accepted:
            return state
        over = self._machine.over is not None
        return ConnectionState.CLOSED if over else ConnectionState.RECONNECTING

    @property
    def address(self) -> Address | None:
        """The address of the current connection, or of the last one; None before the first."""
        return self._supervisor.address

    @property
    def cells(self) -> Cells:
        """Counters and values with a time to live."""
        return Cells(self._port)

    def connection_events(self) -> ConnectionEvents:
        """Return an async iterator over the losses of the connection and new connections, from now
        on."""
        return ConnectionEvents(self._supervisor.watchers)

    def statistics(self) -> ClientStatistics:
        """Counters since the client was opened, and current numbers."""
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
            lapsed=counters.lapsed,
            directs=self._machine.board.directs,
            events=self._machine.board.events,
            customs=self._machine.board.customs,
            pauses=counters.pauses,
            connections=counters.connections,
            resent=counters.resent,
            unsent=counters.unsent,
            buffered=len(self._machine.outbox),
            outstanding=self._machine.outstanding,
            backlog_bytes=self._line.backlog_bytes,
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
            self._port.opened = True
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
        self._port.shut(exc)
        try:
            if exc is None or isinstance(exc, Exception):
                await self._line.aclose(self.linger_s)
            else:
                self._line.hang_up()
        except BaseException as error:
            await self._leave(self._tasks, error)
            raise
        return await self._leave(self._tasks, exc)

    async def aclose(self) -> None:
        """Close the client, from any task: waiting calls raise :class:`ClientClosed`, and loops
        over consumers end.  Leaving the block does this, too; closing twice does nothing.

        Messages that wait for a connection are sent if the client connects within ``linger_s``
        seconds.
        """
        if not self._port.opened:
            return
        self._port.shut(None)
        try:
            await self._line.aclose(self.linger_s)
        finally:
            self._supervisor.close()

    async def _leave(self, tasks: anyio.abc.TaskGroup, error: BaseException | None) -> bool:
        """End the tasks; return whether the task group swallows ``error``.

        Only a cancellation is shown to the task group: it would wrap any other error in a group,
        which ``except OperationFailed`` around the block would not catch.
        """
        tasks.cancel_scope.cancel()
        self._supervisor.close()
        if isinstance(error, anyio.get_cancelled_exc_class()):
            return bool(await tasks.__aexit__(type(error), error, error.__traceback__))
        await tasks.__aexit__(None, None, None)
        return False
