"""One connection of OpenWire: turns the client's commands into the broker's, and effects into
frames.

Theory of operation.  After the negotiation, the client introduces itself, and the session asks the
broker to accept it; further commands wait.  Then each command is carried out when it arrives, and
answered if the client wants a response.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from tmqp.constants import RESULT_BUSY, RESULT_MISDIRECTED_REQUEST
from tmqp.greetings import FirstBytes
from tmqp_server.doors.openwire.acknowledging import GivenUp
from tmqp_server.doors.openwire.answering import INVALID_CLIENT, JMS
from tmqp_server.doors.openwire.browsing import Browsed, LookingSession
from tmqp_server.doors.openwire.consumers import JoinedConsumer, Pulled
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import DOOR, OpenwireMessage
from tmqp_server.doors.openwire.places import ADVISORY
from tmqp_server.doors.openwire.sending import Committed, Made, Sent
from tmqp_server.doors.openwire.subscribing import Listed, LookedFor, Unsubscribed
from tmqp_server.doors.port import SYNTAX
from tmqp_server.doors.waiting import NOTHING, STRANGER
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_server.engine.commands import Connect, Credentials
from tmqp_server.engine.effects import (
    CloseSession,
    Confirm,
    ConfirmRun,
    Effect,
    Lapsed,
    Refuse,
    Reply,
)
from tmqp_wires.openwire import Command
from tmqp_wires.openwire import type_numbers as numbers
from tmqp_wires.openwire.commands import (
    BrokerInfo,
    ConnectionControl,
    ConnectionError_,
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    RemoveInfo,
    SessionInfo,
    ShutdownInfo,
    Throwable,
)
from tmqp_wires.openwire.connection import Event, Fault
from tmqp_wires.openwire.ids import ConnectionId, ConsumerId, ProducerId
from tmqp_wires.openwire.messages import (
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    PLAIN_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
)

__all__ = ["OpenwireSession"]

_NEVER: Final = float("inf")
_NOT_ALLOWED: Final = "java.lang.SecurityException"


@final
class OpenwireSession(LookingSession):
    """One connection.

    :param context: what all connections share.
    """

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._first = FirstBytes()
        self._connect_due = now + context.limits.connect_s
        self._hello: ConnectionInfo | None = None

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[EngineCommand]:
        """Turn bytes into commands."""
        if self.closed or self._ending:
            return NOTHING
        self._first.take(data)
        events = self._wire.receive(data, now)
        self.outbound_bytes += 1  # the negotiation may have been answered
        if self._hello is None:
            # With ``failover:``, a client that reconnects first sends that it is fault-tolerant.
            events = [each for each in events if not isinstance(each, ConnectionControl)]
        return self.take(events, now)

    def fault_of(self, event: Event) -> str:
        """Why the connection ends, if the peer begins with anything but ConnectionInfo, or with an
        unsupported version."""
        if isinstance(event, ConnectionInfo):
            return ""
        self._connect_due = _NEVER
        if isinstance(event, Fault):
            self.close_reason = f"{self._first.sent()}: {event.text}"
            self._wire.send_refusal(event.text)
            return self.close_reason
        text = f"a command of type {event.type} came before ConnectionInfo"
        self._wire.send_refusal(text)
        return text

    def begin(self, event: Event) -> None:
        """Note the client's ConnectionInfo."""
        assert isinstance(event, ConnectionInfo), "anything else is a fault"
        self._connect_due = _NEVER
        self._hello = event
        self._connection = event.connection
        self._agreed()

    def introduction(self) -> Connect:
        """Ask the broker to accept the client under its client id."""
        hello = self._hello
        assert hello is not None, "it has begun"
        said = hello.client_id or hello.connection
        self._durable_id = said
        name = self._context.names.channel_of(said.encode("utf-8", "replace"))
        self._client_id = f"jms:{name}"
        credentials: Credentials | None = None
        if hello.user is not None or hello.password is not None:
            credentials = Credentials("password", hello.password or "", hello.user or "")
        return Connect(
            self._number,
            None,
            self._client_id,
            None,
            None,
            DOOR,
            take_over=hello.failover_reconnect,
            credentials=credentials,
            hears_lapses=True,
        )

    def commands_of(self, events: list[Event], now: float) -> Sequence[EngineCommand]:
        """The broker's commands for those of the client."""
        commands: list[EngineCommand] = []
        for event in events:
            if self.closed or self._ending:
                break
            if isinstance(event, Fault):
                self.violation = SYNTAX
                self._wire.send_refusal(event.text)
                self.outbound_bytes += 1
                commands += self.end(event.text)
                break
            handle = _HANDLERS.get(event.type)
            if handle is None:
                commands += self.close(f"a command of type {event.type} is not for a server", now)
                break
            handle(self, event, commands, now)
        return self._rows.joined(commands)

    def _connected(self, info: ConnectionInfo, commands: list[EngineCommand], now: float) -> None:
        """Answer ConnectionInfo, the first command that is carried out once the client is
        accepted."""
        if self._hello is not info:
            self._fail(self._asked("connection", info), JMS, "the connection exists already")
            return
        context = self._context
        self._say(BrokerInfo(context.broker_id, context.options.broker_name))
        self._settle(self._asked("connection", info))
        self.hurried = True

    def _session(self, info: SessionInfo, commands: list[EngineCommand], now: float) -> None:
        """Answer SessionInfo; a session is only a part of the ids of its consumers and
        producers."""
        self._settle(self._asked("session", info))

    def _start_consumer(
        self, info: ConsumerInfo, commands: list[EngineCommand], now: float
    ) -> None:
        destination = info.destination
        if destination is not None and destination.name.startswith(ADVISORY):
            self._begin_watcher(info, self._asked("advisories", info), commands)
        else:
            self._consume(info, commands, now)

    def _remove(self, info: RemoveInfo, commands: list[EngineCommand], now: float) -> None:
        """End a connection, session, consumer or producer."""
        asked = self._asked("removal", info)
        owner = info.owner
        if isinstance(owner, ProducerId):
            self._producers.pop(owner.key, None)
        elif isinstance(owner, ConsumerId):
            self._watchers.pop(owner.key, None)
            self._end_browser(owner.key)
            consumer = self._consumers.get(owner.key)
            if consumer is not None:
                self._end_consumer(consumer, info.last_delivered, commands)
        else:
            for key, each in list(self._consumers.items()):
                if isinstance(owner, ConnectionId) or key[0] == owner.value:
                    self._end_consumer(each, info.last_delivered, commands)
            for key in list(self._browsers):
                if isinstance(owner, ConnectionId) or key[0] == owner.value:
                    self._end_browser(key)
            for key in list(self._producers):
                if isinstance(owner, ConnectionId) or key[0] == owner.value:
                    del self._producers[key]
        self._settle(asked)

    def _shut_down(self, info: ShutdownInfo, commands: list[EngineCommand], now: float) -> None:
        commands += self.end("the client has disconnected")

    def _nothing(self, command: Command, commands: list[EngineCommand], now: float) -> None:
        """Accept a command that has no meaning for a server."""
        self._settle(self._asked("command", command))

    def end(self, reason: str) -> Sequence[EngineCommand]:
        """End the connection and its temporary destinations."""
        if self.closed:
            return NOTHING
        self._let_go()
        self._watchers.clear()
        return super().end(reason)

    def take_back(self, waiting: int) -> tuple[int, Sequence[EngineCommand]]:
        """The connection ends, perhaps without a message."""
        self._let_go()
        return super().take_back(waiting)

    def _let_go(self) -> None:
        """Free the connection's temporary destinations and durable subscriptions in the door, once
        only, because other connections may use them afterwards."""
        for channel in list(self._temporary):
            self._forget_temporary(channel)
        for consumer in self._consumers.values():
            self._end_durable(consumer)
            consumer.kept_in = ""

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[EngineCommand]:
        """Carry out an effect meant for this session."""
        if self.closed:
            return NOTHING
        if isinstance(effect, Refuse):
            self._refused(effect.code)
        elif isinstance(effect, CloseSession):
            # The broker has already removed the session.
            self._standing = STRANGER
            self._wire.send_refusal(effect.reason)
            self.outbound_bytes += 1
        decided = self.decided(effect, now)
        if decided is not None:
            return decided
        if isinstance(effect, Confirm):
            self._confirmed(effect)
        elif isinstance(effect, ConfirmRun):
            for confirm in effect.confirms():
                self._confirmed(confirm)
        elif isinstance(effect, Reply):
            return self._replied(effect, now)
        elif isinstance(effect, Lapsed):
            return self._forget_lapsed(effect)
        return NOTHING

    def _refused(self, code: int) -> None:
        """Report that the client was refused."""
        hello = self._hello
        if hello is None:
            return
        if code == RESULT_MISDIRECTED_REQUEST:
            return  # without a word: a fail-over transport takes the next address then
        if code == RESULT_BUSY:
            name = self._jms + INVALID_CLIENT
            text = (
                f"the client id {(hello.client_id or '')[:64]!r} is in use, or the server is full"
            )
        else:
            name, text = _NOT_ALLOWED, f"user name or password is not accepted ({code})"
        exception = Throwable(name, text)
        if hello.response_required:
            self._say(ExceptionResponse(hello.command_id, exception))
        else:
            self._say(ConnectionError_(exception, hello.connection))

    def _replied(self, effect: Reply, now: float) -> Sequence[EngineCommand]:
        request = effect.request
        if isinstance(request, OpenwireMessage):
            self._not_sent(request, effect.code)
        elif isinstance(request, JoinedConsumer):
            return self._joined(effect, request)
        elif isinstance(request, Made):
            self._made(effect, request)
        elif isinstance(request, Committed):
            return self._batch_answered(effect, request)
        elif isinstance(request, GivenUp):
            return self._gave_up(effect, request)
        elif isinstance(request, Pulled):
            self._granted(request, now)
        elif isinstance(request, Sent):
            self._sent(request.asked, effect.code)
        elif isinstance(request, LookedFor):
            return self._looked(effect, request)
        elif isinstance(request, Listed):
            return self._listed(effect, request)
        elif isinstance(request, Browsed):
            return self._browsed(effect, request)
        elif isinstance(request, Unsubscribed):
            self._unsubscribed(effect, request)
        return NOTHING

    # -- time -----------------------------------------------------------------------------------

    def excuse_silence(self, now: float) -> None:
        """Count the peer as heard now, because it was not read from."""
        self._wire.excuse_silence(now)

    def next_deadline(self) -> float | None:
        """When the introduction, a heartbeat or the end of a pull is due."""
        if self.closed:
            return None
        due = self._connect_due
        for each in (self._wire.next_deadline(), self._next_pull_due()):
            if each is not None and each < due:
                due = each
        return None if due == _NEVER else due

    def on_deadline(self, now: float) -> Sequence[EngineCommand]:
        """Send a heartbeat, answer pulls, or give up the peer."""
        if self.closed:
            return NOTHING
        if now >= self._connect_due:
            self._connect_due = _NEVER
            return self.close("the client did not introduce itself in time", now)
        for event in self._wire.on_deadline(now):
            if isinstance(event, Fault):
                return self.end(event.text)
        self.outbound_bytes += 1
        return self._pulls_due(now)


_Handler = Callable[[OpenwireSession, Any, list[EngineCommand], float], None]
_HANDLERS: Final[dict[int, _Handler]] = {
    numbers.CONNECTION_INFO: OpenwireSession._connected,
    numbers.SESSION_INFO: OpenwireSession._session,
    numbers.CONSUMER_INFO: OpenwireSession._start_consumer,
    numbers.PRODUCER_INFO: OpenwireSession._produce,
    numbers.TRANSACTION_INFO: OpenwireSession._transact,
    numbers.DESTINATION_INFO: OpenwireSession._destination,
    numbers.REMOVE_INFO: OpenwireSession._remove,
    numbers.REMOVE_SUBSCRIPTION_INFO: OpenwireSession._unsubscribe,
    numbers.SHUTDOWN_INFO: OpenwireSession._shut_down,
    numbers.CONSUMER_CONTROL: OpenwireSession._control,
    numbers.MESSAGE_PULL: OpenwireSession._pull,
    numbers.MESSAGE_ACK: OpenwireSession._answer,
    PLAIN_MESSAGE: OpenwireSession._send,
    BYTES_MESSAGE: OpenwireSession._send,
    MAP_MESSAGE: OpenwireSession._send,
    OBJECT_MESSAGE: OpenwireSession._send,
    STREAM_MESSAGE: OpenwireSession._send,
    TEXT_MESSAGE: OpenwireSession._send,
    numbers.BROKER_INFO: OpenwireSession._nothing,
    numbers.CONNECTION_CONTROL: OpenwireSession._nothing,
    numbers.RESPONSE: OpenwireSession._nothing,
    numbers.EXCEPTION_RESPONSE: OpenwireSession._nothing,
    numbers.CONNECTION_ERROR: OpenwireSession._nothing,
}
