"""A small server of OpenWire, right in what it does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from tmqp_conformance.zoo.small import SmallMachine, SmallSession
from tmqp_wires.openwire import Command, Message, MessageAck, MessageDispatch, WireFormat
from tmqp_wires.openwire.commands import (
    BEGIN,
    COMMIT,
    LAST_UNKNOWN,
    LAST_UNSET,
    BrokerInfo,
    ConnectionError_,
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    KeepAliveInfo,
    MessagePull,
    RemoveInfo,
    Response,
    ShutdownInfo,
    Throwable,
    TransactionInfo,
)
from tmqp_wires.openwire.connection import frame_of
from tmqp_wires.openwire.ids import ConsumerId, Destination, MessageId, XaTransactionId
from tmqp_wires.openwire.messages import ACK_INDIVIDUAL
from tmqp_wires.openwire.reading import read_command

__all__ = ["Consumer", "Letter", "RefusedError", "Session", "SmallOpenwire", "key_of"]

_MOST_BYTES: Final = 1_048_576
_VERSION: Final = 12
_OLDEST: Final = 10
_MAGIC: Final = b"ActiveMQ"
_SIZE: Final = 4
_BEGINS: Final = b"\1" + _MAGIC
_JMS: Final = "javax.jms.JMSException"
_IN_USE: Final = "javax.jms.InvalidClientIDException"


class RefusedError(Exception):
    """A command is not carried out: the text says why, ``name`` is the exception's class."""

    def __init__(self, text: str, name: str = _JMS) -> None:
        super().__init__(text)
        self.name = name


class Letter:
    """A message in a destination; ``number`` is its place, ``counter`` how often it was had."""

    def __init__(self, number: int, message: Message) -> None:
        self.number = number
        self.message = message
        self.counter = 0


class Consumer:
    """A consumer of a session; ``room`` is how many messages it may have in flight."""

    def __init__(self, session: Session, info: ConsumerInfo, destination: Destination) -> None:
        self.session = session
        self.id: ConsumerId = info.consumer
        self.destination = destination
        self.prefetch = info.prefetch
        self.browser = info.browser
        self.pulls = 0
        self.sent = 0
        self.hand: list[Letter] = []

    @property
    def key(self) -> str:
        """Where it consumes."""
        return key_of(self.destination)


def key_of(destination: Destination) -> str:
    """A text for a destination."""
    return f"{'topic' if destination.is_topic else 'queue'}:{destination.name}"


class Session(SmallSession):
    """One connection."""

    def __init__(self) -> None:
        super().__init__()
        self.held = b""
        self.agreed = False
        self.client_id = ""
        self.consumers: list[Consumer] = []
        self.transactions: dict[int, list[Callable[[], None]]] = {}


class SmallOpenwire(SmallMachine[Session]):
    """The server: what waits at each destination, and who consumes."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[str, list[Letter]] = {}
        self.consumers: list[Consumer] = []
        self.numbers = count(1)

    # -- the machine ----------------------------------------------------------------------------

    def made(self) -> Session:
        """See :class:`SmallMachine`."""
        return Session()

    def heard(self, session: Session, data: bytes) -> None:
        """See :class:`SmallMachine`."""
        session.held += data
        while not session.closed and not self.crashed:
            try:
                frame = self.cut(session)
                if frame is None:
                    return
                if session.agreed:
                    self.on_frame(session, frame)
                else:
                    self.negotiate(session, frame)
            except (RefusedError, ValueError) as error:
                self.fail(session, str(error))

    def left(self, session: Session) -> None:
        """See :class:`SmallMachine`."""
        session.transactions.clear()
        for consumer in [*session.consumers]:
            self.end_consumer(consumer, LAST_UNKNOWN)

    def close(self, session: Session) -> None:
        """End a connection."""
        if not session.closed:
            session.closed = True
            self.left(session)

    def fail(self, session: Session, text: str) -> None:
        """Say what is wrong, and close."""
        if session.agreed:
            self.say(session, ConnectionError_(Throwable("java.io.IOException", text), "x"))
        self.close(session)

    # -- the stream -----------------------------------------------------------------------------

    def cut(self, session: Session) -> bytes | None:
        """Take a command from what has come, without its size; None if none is whole.

        :raises RefusedError: for what cannot be one.
        """
        held = session.held
        if not session.agreed:
            self.check_first(held[_SIZE : _SIZE + len(_BEGINS)])
        if len(held) < _SIZE:
            return None
        size = int.from_bytes(held[:_SIZE], "big", signed=True)
        if not 0 < size <= self.most_bytes():
            raise RefusedError("the command is too long")
        if len(held) < _SIZE + size:
            return None
        session.held = held[_SIZE + size :]
        return held[_SIZE : _SIZE + size]

    def check_first(self, begun: bytes) -> None:
        """Whether a peer begins with WireFormatInfo.

        :raises RefusedError: when it does not.
        """
        if not _BEGINS.startswith(begun):
            raise RefusedError("no WireFormatInfo")

    def most_bytes(self) -> int:
        """How long a command may be."""
        return _MOST_BYTES

    def say(self, session: Session, command: Command) -> None:
        """Send a command."""
        session.out += frame_of(command, _VERSION)

    def negotiate(self, session: Session, frame: bytes) -> None:
        """The client's WireFormatInfo is here."""
        if frame[:1] != _BEGINS[:1]:
            session.agreed = True
            self.on_frame(session, frame)
            return
        version = int.from_bytes(frame[9:13], "big", signed=True)
        mine = self.hello_to(version)
        session.out += len(mine).to_bytes(_SIZE, "big") + mine
        session.agreed = True
        self.check_version(version)

    def hello_to(self, version: int) -> bytes:
        """The server's WireFormatInfo."""
        return WireFormat(_VERSION, 0, 0, _MOST_BYTES).encoded()

    def check_version(self, version: int) -> None:
        """Whether the client's version is spoken.

        :raises RefusedError: when it is not.
        """
        if version < _OLDEST:
            raise RefusedError(f"version {version} is too old")

    # -- commands -------------------------------------------------------------------------------

    def on_frame(self, session: Session, frame: bytes) -> None:
        """Carry out a command, and answer it.

        :raises RefusedError: when the connection must end.
        """
        command = self.read(session, frame)
        if command is None:
            return
        try:
            self.carry_out(session, command)
        except RefusedError as error:
            if not session.client_id and not isinstance(command, ConnectionInfo):
                self.early(session)
            self.except_(session, command, error)
        else:
            self.answer(session, command)

    def read(self, session: Session, frame: bytes) -> Command | None:
        """The command of a frame; None for one that is ignored.

        :raises ValueError: when it is not one.
        """
        return read_command(frame, _VERSION)

    def early(self, session: Session) -> None:
        """A command came before ConnectionInfo.

        :raises RefusedError: always, in a server that is right.
        """
        raise RefusedError("it came before ConnectionInfo")

    def answer(self, session: Session, command: Command) -> None:
        """A command was carried out."""
        if self.wants(command):
            self.say(session, Response(command.command_id))

    def wants(self, command: Command) -> bool:
        """Whether a command wants a response."""
        return command.response_required and not isinstance(command, KeepAliveInfo)

    def except_(self, session: Session, command: Command, error: RefusedError) -> None:
        """A command was not carried out."""
        exception = Throwable(error.name, str(error))
        self.say(session, ExceptionResponse(command.command_id, exception))

    def carry_out(self, session: Session, command: Command) -> None:
        """Do what a command asks for.

        :raises RefusedError: when that cannot be.
        """
        if isinstance(command, ConnectionInfo):
            self.let_in(session, command)
        elif not session.client_id:
            raise RefusedError("it came before ConnectionInfo")
        elif isinstance(command, KeepAliveInfo):
            self.keep_alive(session, command)
        elif isinstance(command, ShutdownInfo):
            self.shut_down(session)
        elif isinstance(command, ConsumerInfo):
            self.consume(session, command)
        elif isinstance(command, RemoveInfo):
            self.remove(session, command)
        elif isinstance(command, MessagePull):
            self.pull(session, command)
        elif isinstance(command, MessageAck):
            self.acknowledge(session, command)
        elif isinstance(command, TransactionInfo):
            self.transact(session, command)
        elif isinstance(command, Message):
            self.send(session, command)

    def let_in(self, session: Session, info: ConnectionInfo) -> None:
        """ConnectionInfo."""
        wanted = info.client_id or info.connection
        others = [each for each in self.sessions.values() if each is not session]
        if any(each.client_id == wanted and not each.closed for each in others):
            self.in_use(wanted)
        session.client_id = wanted
        self.say(session, BrokerInfo("ID:small", "small"))

    def in_use(self, client_id: str) -> None:
        """Another connection has this client id.

        :raises RefusedError: always, in a server that is right.
        """
        raise RefusedError(f"{client_id} is in use", _IN_USE)

    def keep_alive(self, session: Session, info: KeepAliveInfo) -> None:
        """KeepAliveInfo."""
        if info.response_required:
            self.say(session, KeepAliveInfo())

    def shut_down(self, session: Session) -> None:
        """ShutdownInfo."""
        self.close(session)

    # -- consumers ------------------------------------------------------------------------------

    def consume(self, session: Session, info: ConsumerInfo) -> None:
        """ConsumerInfo."""
        destination = info.destination
        if destination is None:
            raise RefusedError("a consumer without a destination")
        consumer = Consumer(session, info, destination)
        self.answer(session, info)
        info.response_required = False
        if consumer.browser:
            self.browse(consumer)
            return
        session.consumers.append(consumer)
        self.consumers.append(consumer)
        self.pump(consumer.key)

    def browse(self, consumer: Consumer) -> None:
        """Show a browser what waits."""
        for letter in self.waiting.get(consumer.key, []):
            self.dispatch(consumer, letter)
        self.end_of_browse(consumer)

    def end_of_browse(self, consumer: Consumer) -> None:
        """A browser has seen all."""
        self.say(consumer.session, MessageDispatch(consumer.id, None, None))

    def remove(self, session: Session, info: RemoveInfo) -> None:
        """RemoveInfo."""
        owner = info.owner
        for consumer in [*session.consumers]:
            if isinstance(owner, ConsumerId) and consumer.id.key == owner.key:
                self.end_consumer(consumer, info.last_delivered)

    def end_consumer(self, consumer: Consumer, last: int) -> None:
        """A consumer ends: what it had in flight is for others."""
        consumer.session.consumers.remove(consumer)
        self.consumers.remove(consumer)
        for letter in consumer.hand:
            if last == LAST_UNKNOWN or (last != LAST_UNSET and letter.number <= last):
                self.counted(letter)
        if not consumer.destination.is_topic:
            self.give_back(consumer.key, consumer.hand)

    def counted(self, letter: Letter) -> None:
        """A message was had, and comes again."""
        letter.counter += 1

    def give_back(self, key: str, letters: list[Letter]) -> None:
        """Messages come to others, in their order."""
        waiting = self.waiting.setdefault(key, [])
        waiting += letters
        waiting.sort(key=lambda each: each.number)
        self.pump(key)

    def pull(self, session: Session, pull: MessagePull) -> None:
        """MessagePull."""
        for consumer in session.consumers:
            if pull.consumer is not None and consumer.id.key == pull.consumer.key:
                consumer.pulls += 1
                self.pump(consumer.key)

    def has_room(self, consumer: Consumer) -> bool:
        """Whether a consumer may have one more."""
        return consumer.pulls > 0 or len(consumer.hand) < consumer.prefetch

    # -- messages -------------------------------------------------------------------------------

    def send(self, session: Session, message: Message) -> None:
        """A message."""
        destination = message.destination
        if destination is None:
            raise RefusedError("a message without a destination")

        def put() -> None:
            self.put(key_of(destination), Letter(next(self.numbers), message))

        self.within(session, message, put)

    def put(self, key: str, letter: Letter) -> None:
        """A message is sent."""
        self.waiting.setdefault(key, []).append(letter)
        self.pump(key)

    def pump(self, key: str) -> None:
        """Deliver what waits at a destination."""
        waiting = self.waiting.setdefault(key, [])
        while waiting:
            listening = [each for each in self.consumers if each.key == key]
            if key.startswith("topic:"):
                receivers = self.subscribed(listening)
            else:
                receivers = self.served([each for each in listening if self.has_room(each)])
                if not receivers:
                    return
            letter = waiting.pop(0)
            for consumer in receivers:
                consumer.pulls = max(0, consumer.pulls - 1)
                consumer.hand.append(letter)
                self.dispatch(consumer, letter)

    def subscribed(self, listening: list[Consumer]) -> list[Consumer]:
        """Who gets a message of a topic."""
        return listening

    def served(self, free: list[Consumer]) -> list[Consumer]:
        """Who gets a message of a queue."""
        return free[:1]

    def dispatch(self, consumer: Consumer, letter: Letter) -> None:
        """Send a message to a consumer."""
        message = letter.message
        assert message.message_id is not None
        message.message_id.broker_sequence = letter.number
        message.redelivery_counter = letter.counter
        consumer.sent += 1
        self.say(consumer.session, self.dispatch_of(consumer, letter))

    def dispatch_of(self, consumer: Consumer, letter: Letter) -> MessageDispatch:
        """The command that has a message for a consumer."""
        destination = consumer.destination
        return MessageDispatch(consumer.id, destination, letter.message, letter.counter)

    def acknowledge(self, session: Session, ack: MessageAck) -> None:
        """MessageAck."""
        for consumer in session.consumers:
            if ack.consumer is not None and consumer.id.key == ack.consumer.key:
                self.acknowledge_of(consumer, ack)

    def acknowledge_of(self, consumer: Consumer, ack: MessageAck) -> None:
        """MessageAck of this consumer."""
        meant = self.meant(consumer, ack)

        def done() -> None:
            consumer.hand = [each for each in consumer.hand if each not in meant]
            self.pump(consumer.key)

        self.within(consumer.session, ack, done)

    def meant(self, consumer: Consumer, ack: MessageAck) -> list[Letter]:
        """The messages that an answer is about."""
        first, last = _sequence(ack.first), _sequence(ack.last)
        if ack.kind == ACK_INDIVIDUAL:
            first = last
        return [each for each in consumer.hand if first <= each.number <= last]

    # -- transactions ---------------------------------------------------------------------------

    def within(
        self, session: Session, command: Message | MessageAck, act: Callable[[], None]
    ) -> None:
        """Do it now, or when the transaction is committed."""
        wanted = command.transaction
        if wanted is None:
            act()
            return
        staged = None if isinstance(wanted, XaTransactionId) else wanted.value
        if staged is None or staged not in session.transactions:
            raise RefusedError("there is no such transaction")
        session.transactions[staged].append(act)

    def transact(self, session: Session, info: TransactionInfo) -> None:
        """TransactionInfo."""
        wanted = info.transaction
        if wanted is None or isinstance(wanted, XaTransactionId):
            self.refuse_xa()
            return
        if info.operation == BEGIN:
            session.transactions[wanted.value] = []
        else:
            acts = session.transactions.pop(wanted.value, [])
            if self.commits(info.operation):
                for act in acts:
                    act()

    def refuse_xa(self) -> None:
        """A transaction of several resources is not served.

        :raises RefusedError: always, in a server that is right.
        """
        raise RefusedError("there is no XA", "javax.transaction.xa.XAException")

    def commits(self, operation: int) -> bool:
        """Whether this commits a transaction."""
        return operation == COMMIT


def _sequence(id: MessageId | None) -> int:
    return 0 if id is None else id.broker_sequence
