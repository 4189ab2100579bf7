"""The producing part of a session of OpenWire: messages, transactions, temporary destinations.

A transaction is kept here until it is committed as one batch: all of its messages and answers take
effect, or none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_DUPLICATE,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.doors.bodies import bytes_around
from tmqp_server.doors.letter import REGULAR_PRIORITY
from tmqp_server.doors.openwire.answering import (
    INVALID_DESTINATION,
    JMS,
    OVER_LIMIT,
    AskedCommand,
    CommandError,
    RespondingSession,
    fault_of_code,
)
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import DELAY, QUEUE, OpenwireMessage
from tmqp_server.doors.openwire.places import (
    ADVISORY,
    TEMPORARY_SCHEMES,
    JmsPlace,
    parts_of,
    place_of,
)
from tmqp_server.engine.commands import (
    Batch,
    CreateQueue,
    Push,
    PushExtras,
    RemoveChannel,
)
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_server.engine.effects import Confirm, Reply
from tmqp_wires.openwire.commands import (
    ADD,
    BEGIN,
    COMMIT,
    REMOVE,
    ROLLBACK,
    DestinationInfo,
    ProducerAck,
    ProducerInfo,
    TransactionInfo,
)
from tmqp_wires.openwire.data import WireError, read_map
from tmqp_wires.openwire.ids import (
    Destination,
    LocalTransactionId,
    TransactionId,
    XaTransactionId,
)
from tmqp_wires.openwire.messages import Message

__all__ = ["ANSWER_BYTES", "Committed", "LocalTransaction", "Made", "ProducerSession", "Sent"]

#: What an answer in a transaction counts, in bytes.
ANSWER_BYTES: Final = 200
_NOT_THERE: Final = (RESULT_BAD_REQUEST, RESULT_NOT_FOUND, RESULT_UNACCEPTABLE)
_MOST_PLACES: Final = 1_000
#: The bytes that the client counts for a message besides its body and its properties.
_LEAST_SIZE: Final = 1_024
_SCHEDULED: Final = b"AMQ_SCHEDULED_"
_REPEATED: Final = ("AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON")
_XA: Final = "javax.transaction.xa.XAException"
#: XAException.XAER_RMERR, as the client reads it out of the text.
_XA_REFUSED: Final = "transactions of several resources are not served. xaErrorCode:-3"


@final
class Made:
    """The token of a command that creates or removes a destination."""

    __slots__ = ("asked", "channel", "removes")

    def __init__(self, asked: AskedCommand | None, channel: str, *, removes: bool = False) -> None:
        self.asked = asked
        self.channel = channel
        self.removes = removes


@final
class Sent:
    """The token of a batch that sends one message to several destinations."""

    __slots__ = ("asked",)

    def __init__(self, asked: AskedCommand) -> None:
        self.asked = asked


@final
class LocalTransaction:
    """An open transaction: ``commands`` in order; ``fault``, why it can only be rolled back, empty
    if it can be committed."""

    __slots__ = ("commands", "fault", "number", "size")

    def __init__(self, number: int) -> None:
        self.number = number
        self.commands: list[EngineCommand] = []
        self.size = 0
        self.fault = ""


@final
class Committed:
    """The token of the batch of a committed transaction."""

    __slots__ = ("asked", "transaction")

    def __init__(self, asked: AskedCommand, transaction: LocalTransaction) -> None:
        self.asked = asked
        self.transaction = transaction


class ProducerSession(RespondingSession):
    """The part of a session that sends messages and keeps transactions."""

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._places: dict[tuple[int, str], list[JmsPlace]] = {}
        #: Windows of producers, by their ids.
        self._producers: dict[tuple[int, int], int] = {}
        #: Of messages that are not confirmed: their commands.
        self._unconfirmed: dict[str, AskedCommand] = {}
        self._temporary: dict[str, Destination] = {}
        self._transactions: dict[int, LocalTransaction] = {}
        self._transactions_bytes = 0
        self._measured = ""
        self._around = 0
        #: The destination of the last message, and the beginning of an exception about it.
        self._last_name = ""
        self._what = "message to ''"

    # -- destinations ---------------------------------------------------------------------------

    def _places_of(self, destination: Destination | None) -> list[JmsPlace]:
        """The places of a destination.

        :raises CommandError: when it has no name, or names too many destinations.
        """
        if destination is None:
            raise CommandError(INVALID_DESTINATION, "no destination is named")
        key = (destination.type, destination.name)
        found = self._places.get(key)
        if found is None:
            parts = parts_of(destination)
            most = self._context.limits.max_destinations
            if not parts:
                raise CommandError(INVALID_DESTINATION, "the destination has no name")
            if len(parts) > most:
                raise CommandError(OVER_LIMIT, f"at most {most} destinations can be named at once")
            found = [place_of(each, self._context.names) for each in parts]
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            self._places[key] = found
        return found

    def _create(self, place: JmsPlace, request: object) -> EngineCommand:
        shape = self._context.shape(place)
        return CreateQueue(self._number, request, place.channel, QUEUE, shape)

    def _destination(
        self, info: DestinationInfo, commands: list[EngineCommand], now: float
    ) -> None:
        """Create or remove a destination, usually a temporary one."""
        destination = info.destination
        name = "" if destination is None else destination.name
        asked = self._asked(f"destination {name[:64]!r}", info)
        try:
            if destination is None or len(parts_of(destination)) != 1:
                raise CommandError(INVALID_DESTINATION, "one destination must be named")
            self._make_or_remove(info, self._places_of(destination)[0], asked, commands)
        except CommandError as error:
            self._fail(asked, error.name, str(error))

    def _make_or_remove(
        self,
        info: DestinationInfo,
        place: JmsPlace,
        asked: AskedCommand,
        commands: list[EngineCommand],
    ) -> None:
        context = self._context
        if info.operation == REMOVE:
            made = Made(asked, place.channel, removes=True)
            commands.append(RemoveChannel(self._number, made, place.channel))
            return
        if info.operation != ADD:
            raise CommandError(JMS, f"there is no operation {info.operation}")
        if not place.is_temporary:
            commands.append(self._create(place, Made(asked, place.channel)))
            return
        if len(self._temporary) >= context.limits.max_temporary:
            most = context.limits.max_temporary
            raise CommandError(OVER_LIMIT, f"a connection has at most {most} of them")
        self._temporary[place.channel] = place.destination
        context.temporary[place.channel] = place.destination
        commands.append(
            CreateQueue(
                self._number,
                Made(asked, place.channel),
                place.channel,
                QUEUE,
                context.shape(place),
                context.shapes.of_temporary,
            )
        )

    def _made(self, effect: Reply, made: Made) -> None:
        """Handle the result of creating or removing a destination."""
        code = effect.code
        was_done = code in (RESULT_OK, RESULT_DUPLICATE)
        if was_done == made.removes:
            self._forget_temporary(made.channel)
        if made.asked is None:
            return
        if was_done:
            self._settle(made.asked)
        else:
            self._fail(made.asked, *fault_of_code(code))

    def _forget_temporary(self, channel: str) -> None:
        if self._temporary.pop(channel, None) is not None:
            self._context.temporary.pop(channel, None)

    # -- producers ------------------------------------------------------------------------------

    def _produce(self, info: ProducerInfo, commands: list[EngineCommand], now: float) -> None:
        """Begin a producer; like ActiveMQ, create the destination that it names."""
        asked = self._asked("producer", info)
        most = self._context.limits.max_producers
        if len(self._producers) >= most:
            self._fail(asked, OVER_LIMIT, f"a connection has at most {most} producers")
            return
        self._producers[info.producer.key] = info.window
        if info.destination is not None and not info.destination.name.startswith(ADVISORY):
            try:
                for place in self._places_of(info.destination):
                    if not (place.is_temporary or place.is_pattern):
                        commands.append(self._create(place, Made(None, place.channel)))
            except CommandError as error:
                del self._producers[info.producer.key]
                self._fail(asked, error.name, str(error))
                return
        self._settle(asked)

    # -- messages -------------------------------------------------------------------------------

    def _send(self, message: Message, commands: list[EngineCommand], now: float) -> None:
        destination = message.destination
        name = "" if destination is None else destination.name
        if name != self._last_name:
            self._last_name = name
            self._what = f"message to {name[:64]!r}"
        asked = self._asked(self._what, message)
        producer = message.producer
        if not asked.number and producer is not None and self._producers.get(producer.key):
            self._say(ProducerAck(producer, _client_size(message)))
        try:
            transaction = self._transaction_of(message.transaction)
            pushes = self._pushes_of(message, now)
        except CommandError as error:
            self._spoil(message.transaction, f"{asked.what}: {error}")
            self._fail(asked, error.name, str(error))
            return
        if transaction is not None:
            for each in pushes:
                self._add(transaction, each, each.size)
            self._settle(asked)
        elif len(pushes) > 1:
            commands.append(Batch(self._number, Sent(asked), list(pushes)))
        else:
            push = pushes[0]
            if asked.number:
                if push.message_id in self._unconfirmed:
                    self._fail(asked, JMS, "a message with this id is being sent already")
                    return
                push.wants_confirm = True
                self._unconfirmed[push.message_id] = asked
            commands.append(push)

    def _pushes_of(self, message: Message, now: float) -> list[Push]:
        """The pushes of a message, one for each destination.

        :raises CommandError: when the message cannot be sent.
        """
        message_id = message.message_id
        kept = message.kept
        if message_id is None or kept is None:
            raise CommandError(JMS, "the message has no id")
        context = self._context
        expires_in_ms = 0
        if message.expiration > 0:
            # One that has expired on its way still becomes a dead letter.
            expires_in_ms = max(1, message.expiration - context.unix_ms(now))
        delay_ms = _delay_of(message)
        group = message.group_id or ""
        name = str(message_id)
        found: list[Push] = []
        for place in self._places_of(message.destination):
            if place.is_pattern:
                raise CommandError(INVALID_DESTINATION, "a message cannot be sent to wildcards")
            channel = place.channel
            around = self._around_of(channel)
            wire = OpenwireMessage(
                name, channel, kept, message.reply_to, group, message.priority, around
            )
            extras: PushExtras = context.extras(place, expires_in_ms, delay_ms)
            high = message.priority > REGULAR_PRIORITY
            found.append(
                Push(self._number, name, channel, QUEUE, high, False, wire.size, wire, extras)
            )
        return found

    def _around_of(self, channel: str) -> int:
        """The bytes of a stored message besides its id and its fields."""
        if channel != self._measured:
            self._measured = channel
            self._around = bytes_around(self._client_id, channel)
        return self._around

    def _not_sent(self, wire: OpenwireMessage, code: int) -> None:
        """Report that a message was refused."""
        asked = self._unconfirmed.pop(wire.message_id, None)
        name = self._context.names.foreign_name(wire.channel).decode("utf-8", "replace")
        if asked is None:
            asked = AskedCommand(f"message to {name[:64]!r}", 0)
        if code in _NOT_THERE and name.startswith(TEMPORARY_SCHEMES):
            # A push does not create it, because it would have no owner.
            self._fail(asked, INVALID_DESTINATION, "the temporary destination no longer exists")
        else:
            self._fail(asked, *fault_of_code(code))

    def _sent(self, asked: AskedCommand, code: int) -> None:
        """Handle the result of a message for several destinations, which reaches all or none of
        them."""
        if code == RESULT_OK:
            self._settle(asked)
        else:
            self._fail(asked, *fault_of_code(code))

    def _confirmed(self, effect: Confirm) -> None:
        asked = self._unconfirmed.pop(effect.message_id, None)
        if asked is None:
            return
        if effect.positive:
            self._settle(asked)
        else:
            self._fail(asked, JMS, f"not accepted: {effect.reason or 'refused'}")

    # -- transactions ---------------------------------------------------------------------------

    def _transaction_of(self, wanted: TransactionId | None) -> LocalTransaction | None:
        """The transaction that a command belongs to; None if it belongs to none.

        :raises CommandError: when the transaction does not exist, or is an XA transaction.
        """
        if wanted is None:
            return None
        if isinstance(wanted, XaTransactionId):
            raise CommandError(_XA, _XA_REFUSED)
        found = self._transactions.get(wanted.value)
        if found is None:
            raise CommandError(JMS, f"there is no transaction {wanted.value}")
        return found

    def _spoil(self, wanted: TransactionId | None, text: str) -> None:
        """Mark a transaction as failed: it can only be rolled back."""
        if isinstance(wanted, LocalTransactionId):
            transaction = self._transactions.get(wanted.value)
            if transaction is not None and not transaction.fault:
                transaction.fault = text

    def _add(self, transaction: LocalTransaction, command: EngineCommand, size: int) -> None:
        """Add a command to a transaction; a limit that is exceeded spoils the transaction."""
        limits = self._context.limits
        if transaction.fault:
            return
        if len(transaction.commands) >= limits.max_transaction_commands:
            most = limits.max_transaction_commands
            transaction.fault = f"a transaction has at most {most} messages and answers"
        elif self._transactions_bytes + size > limits.max_transaction_bytes:
            transaction.fault = f"transactions have at most {limits.max_transaction_bytes} bytes"
        else:
            transaction.commands.append(command)
            transaction.size += size
            self._transactions_bytes += size

    def _transact(self, info: TransactionInfo, commands: list[EngineCommand], now: float) -> None:
        """Begin, commit or roll back a transaction."""
        wanted = info.transaction
        asked = self._asked("transaction", info)
        if not isinstance(wanted, LocalTransactionId):
            self._fail(asked, _XA, _XA_REFUSED)
        elif info.operation == BEGIN:
            self._begin_transaction(wanted.value, asked)
        elif info.operation == COMMIT:
            self._commit(wanted.value, asked, commands)
        elif info.operation == ROLLBACK:
            transaction = self._take_transaction(wanted.value)
            if transaction is not None:
                self._rolled_back(transaction, commands)
            self._settle(asked)
        else:
            self._fail(asked, JMS, f"operation {info.operation} is not for local transactions")

    def _begin_transaction(self, number: int, asked: AskedCommand) -> None:
        most = self._context.limits.max_transactions
        if number in self._transactions:
            # A client repeats BEGIN after a failover.
            self._settle(asked)
        elif len(self._transactions) >= most:
            self._fail(asked, OVER_LIMIT, f"a connection has at most {most} open transactions")
        else:
            self._transactions[number] = LocalTransaction(number)
            self._settle(asked)

    def _take_transaction(self, number: int) -> LocalTransaction | None:
        """Remove a transaction; None if it does not exist."""
        transaction = self._transactions.pop(number, None)
        if transaction is not None:
            self._transactions_bytes -= transaction.size
        return transaction

    def _commit(self, number: int, asked: AskedCommand, commands: list[EngineCommand]) -> None:
        transaction = self._take_transaction(number)
        asked.what = "commit"
        if transaction is None:
            self._fail(asked, JMS, f"there is no transaction {number}")
        elif transaction.fault:
            self._rolled_back(transaction, commands)
            self._fail(asked, "TransactionRolledBackException", transaction.fault)
        elif transaction.commands:
            committed = Committed(asked, transaction)
            commands.append(Batch(self._number, committed, transaction.commands))
        else:
            self._settle(asked)

    def _rolled_back(self, transaction: LocalTransaction, commands: list[EngineCommand]) -> None:
        """Called when a transaction was rolled back."""

    def _done(self, transaction: LocalTransaction, commands: list[EngineCommand]) -> None:
        """Called when a transaction was committed."""

    def _batch_answered(self, effect: Reply, committed: Committed) -> Sequence[EngineCommand]:
        commands: list[EngineCommand] = []
        if effect.code == RESULT_OK:
            self._done(committed.transaction, commands)
            self._settle(committed.asked)
        else:
            self._rolled_back(committed.transaction, commands)
            _, words = fault_of_code(effect.code)
            text = f"nothing was done: {words}"
            self._fail(committed.asked, "TransactionRolledBackException", text)
        return commands

    def held_bytes(self) -> int:
        """Bytes of an incomplete frame, of input that waits for the decision about the client, and
        of open transactions."""
        return super().held_bytes() + self._transactions_bytes


def _client_size(message: Message) -> int:
    """The size that the client counts for a message in its producer's window."""
    size = _LEAST_SIZE
    for part in (message.content, message.properties):
        if part is not None:
            size += len(part)
    return size


def _delay_of(message: Message) -> int:
    """For how many milliseconds a message is deferred.

    :raises CommandError: when the delay is invalid, or the message is to be repeated.
    """
    properties = message.properties
    if properties is None or _SCHEDULED not in properties:
        return 0
    try:
        said = {name: value for name, _, value in read_map(properties)}
    except WireError as error:
        raise CommandError(JMS, f"the properties are invalid: {error}") from None
    for name in _REPEATED:
        if name in said:
            raise CommandError(JMS, f"{name} is not served: a message is delayed once")
    delay = said.get(DELAY, 0)
    if isinstance(delay, bool) or not isinstance(delay, int) or delay < 0:
        raise CommandError(JMS, f"{DELAY} is not a number of milliseconds")
    return delay
