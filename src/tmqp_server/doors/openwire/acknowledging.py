"""Acknowledgements, refusals and dead letters of messages in flight to OpenWire clients.

When a program asks for redelivery, by ``rollback`` or ``recover``, the client does it: the messages
stay in flight, and the server is notified only when the consumer ends, or when the client gives up
a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from tmqp.constants import PUT_BACK_END, RESULT_OK
from tmqp_server.doors.answers import PlainAnswers
from tmqp_server.doors.jms.in_hand import number_of
from tmqp_server.doors.jms.rows import RowMaker
from tmqp_server.doors.openwire.answering import JMS, AskedCommand, CommandError
from tmqp_server.doors.openwire.consumers import Consumer, InHand, StagedAnswer
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import QUEUE, OpenwireMessage, fields_of, is_keyless
from tmqp_server.doors.openwire.places import place_of
from tmqp_server.doors.openwire.sending import ANSWER_BYTES, LocalTransaction, ProducerSession
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Batch,
    CloseBranch,
    Push,
    Release,
    SetTerms,
    Terms,
    index_of,
)
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_server.engine.effects import Lapsed, Reply
from tmqp_wires.openwire import data as primitives
from tmqp_wires.openwire.commands import Throwable
from tmqp_wires.openwire.data import WireError, encode_map, read_map
from tmqp_wires.openwire.ids import QUEUE as QUEUE_TYPE
from tmqp_wires.openwire.ids import Destination
from tmqp_wires.openwire.messages import (
    ACK_DELIVERED,
    ACK_EXPIRED,
    ACK_INDIVIDUAL,
    ACK_POISON,
    ACK_REDELIVERED,
    ACK_STANDARD,
    ACK_UNMATCHED,
    KeptMessage,
    MessageAck,
)

__all__ = ["AcknowledgingSession", "GivenUp", "dead_letter_of"]

_CAUSE: Final = "dlqDeliveryFailureCause"
_EXPIRATION: Final = "originalExpiration"
_EXPIRED: Final = "Message Expired"
_LONGEST_CAUSE: Final = 2_000


@final
class GivenUp:
    """The token of a batch that turns a message into a dead letter."""

    __slots__ = ("consumer", "delivery", "number")

    def __init__(self, consumer: Consumer, number: int, delivery: InHand) -> None:
        self.consumer = consumer
        self.number = number
        self.delivery = delivery


class AcknowledgingSession(ProducerSession):
    """The part of a session that handles acknowledgements."""

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._consumers: dict[tuple[int, int], Consumer] = {}
        self._by_index: dict[int, Consumer] = {}
        #: The consumers that ended last; a transaction fails if it has later answers of theirs.
        self._ended: dict[tuple[int, int], None] = {}
        self._staged: dict[int, list[StagedAnswer]] = {}
        self._rows = RowMaker(is_keyless)

    def _answer(self, ack: MessageAck, commands: list[EngineCommand], now: float) -> None:
        asked = self._asked("acknowledgement", ack)
        consumer = None if ack.consumer is None else self._consumers.get(ack.consumer.key)
        if consumer is None:
            # It has ended, or it browses, or it is about advisories.
            if ack.consumer is not None and ack.consumer.key in self._ended:
                self._spoil(ack.transaction, "an answer is of a consumer that has ended")
            self._settle(asked)
            return
        numbers = consumer.between(ack.first, ack.last, ack.count)
        kind = ack.kind
        if kind == ACK_INDIVIDUAL:
            numbers = numbers[-1:]
        try:
            transaction = self._transaction_of(ack.transaction)
        except CommandError as error:
            self._fail(asked, error.name, str(error))
            return
        if kind in (ACK_STANDARD, ACK_INDIVIDUAL):
            if transaction is None:
                commands += self._acknowledged(consumer, numbers)
            else:
                wanted = ack.count if kind == ACK_STANDARD else 1
                if consumer.lacks(numbers, wanted, ack.destination):
                    # The rest of the transaction must not be committed without it.
                    text = "an answer is about a message that the consumer has no longer"
                    self._spoil(ack.transaction, text)
                self._stage(transaction, consumer, numbers)
        elif kind == ACK_DELIVERED:
            for number in numbers:
                delivery = consumer.in_hand[number]
                if not delivery.handed:
                    delivery.handed = True
                    consumer.handed += 1
        elif kind in (ACK_POISON, ACK_EXPIRED):
            self._give_up(consumer, numbers, kind, ack.cause, commands)
        elif kind == ACK_UNMATCHED:
            for number in numbers:
                commands.append(self._release(consumer, number, PUT_BACK_END, counted=False))
        elif kind != ACK_REDELIVERED:
            self._fail(asked, JMS, f"there is no acknowledgement of kind {kind}")
            return
        self._open_window(consumer, commands)
        self._settle(asked)

    def _open_window(self, consumer: Consumer, commands: list[EngineCommand]) -> None:
        """Tell the broker the consumer's current window, if it has changed."""
        window = consumer.window
        if window == consumer.granted or consumer.ends:
            return
        consumer.granted = window
        for channel in consumer.channels:
            terms = Terms(window)
            commands.append(SetTerms(consumer.number, None, channel, terms))

    def _take(self, consumer: Consumer, number: int) -> InHand:
        """Remove a delivery from those in flight."""
        delivery = consumer.in_hand.pop(number)
        if delivery.handed:
            consumer.handed -= 1
        if delivery.staged:
            consumer.staged -= 1
        return delivery

    def _acknowledged(self, consumer: Consumer, numbers: list[int]) -> list[EngineCommand]:
        """Acknowledge deliveries, those of one queue together, except those staged in a
        transaction."""
        by_queue: dict[tuple[str, int], list[str]] = {}
        for number in numbers:
            if not consumer.in_hand[number].staged:
                delivery = self._take(consumer, number)
                key = (delivery.channel, delivery.queue_id)
                by_queue.setdefault(key, []).append(delivery.message_id)
        notes = self._rows.notes
        return [
            AcknowledgeRun(consumer.number, channel, queue_id, ids, PlainAnswers(), notes)
            for (channel, queue_id), ids in by_queue.items()
        ]

    def _release(
        self, consumer: Consumer, number: int, put_back: int, *, counted: bool
    ) -> EngineCommand:
        """Put back a delivery."""
        delivery = self._take(consumer, number)
        return Release(
            consumer.number,
            None,
            delivery.message_id,
            delivery.channel,
            delivery.queue_id,
            put_back,
            counted=counted,
        )

    def _forget_lapsed(self, effect: Lapsed) -> list[EngineCommand]:
        """Remove a delivery that has lapsed, and adjust the consumer's window."""
        commands: list[EngineCommand] = []
        consumer = self._by_index.get(index_of(effect.session))
        if consumer is not None:
            number = number_of(consumer.in_hand, effect)
            if number:
                self._take(consumer, number)
                self._open_window(consumer, commands)
                self._close_ended(commands)
        return commands

    # -- transactions -----------------------------------------------------------------------------

    def _stage(
        self, transaction: LocalTransaction, consumer: Consumer, numbers: Iterable[int]
    ) -> None:
        """Keep answers until the commit; the deliveries stay in flight until then."""
        for number in numbers:
            delivery = consumer.in_hand[number]
            if delivery.staged:
                continue
            delivery.staged = True
            consumer.staged += 1
            if not delivery.handed:
                # As for ActiveMQ: a transaction may be larger than the prefetch.
                delivery.handed = True
                consumer.handed += 1
            self._staged.setdefault(transaction.number, []).append(StagedAnswer(consumer, number))
            command = Acknowledge(
                consumer.number, delivery.message_id, delivery.channel, delivery.queue_id
            )
            self._add(transaction, command, ANSWER_BYTES)

    def _rolled_back(self, transaction: LocalTransaction, commands: list[EngineCommand]) -> None:
        """Undo the answers of a transaction: their deliveries are unanswered again."""
        for each in self._staged.pop(transaction.number, ()):
            delivery = each.consumer.in_hand.get(each.number)
            if delivery is not None and delivery.staged:
                delivery.staged = False
                each.consumer.staged -= 1
        self._close_ended(commands)

    def _done(self, transaction: LocalTransaction, commands: list[EngineCommand]) -> None:
        """Remove the deliveries that a committed transaction has answered."""
        touched: dict[int, Consumer] = {}
        for each in self._staged.pop(transaction.number, ()):
            if each.number in each.consumer.in_hand:
                self._take(each.consumer, each.number)
                touched[each.consumer.index] = each.consumer
        for consumer in touched.values():
            self._open_window(consumer, commands)
        self._close_ended(commands)

    def _close_ended(self, commands: list[EngineCommand]) -> None:
        """End consumers that only waited for their transactions."""
        for consumer in list(self._by_index.values()):
            if consumer.ends and not consumer.staged:
                del self._by_index[consumer.index]
                commands.append(CloseBranch(self._number, None, consumer.number))

    # -- dead letters -----------------------------------------------------------------------------

    def _give_up(
        self,
        consumer: Consumer,
        numbers: list[int],
        kind: int,
        cause: Throwable | None,
        commands: list[EngineCommand],
    ) -> None:
        """Turn persistent messages into dead letters; acknowledge the others."""
        text = _EXPIRED if kind == ACK_EXPIRED else "the client has given it up"
        if cause is not None:
            text = f"{cause.class_name}: {cause.message or ''}"[:_LONGEST_CAUSE]
        name = self._context.options.dead_letters
        for number in numbers:
            delivery = consumer.in_hand[number]
            kept = delivery.kept
            if not name or delivery.staged:
                commands += self._acknowledged(consumer, [number])
                continue
            letter = dead_letter_of(kept, name, text)
            if letter is None:
                commands += self._acknowledged(consumer, [number])
                continue
            delivery.staged = True
            consumer.staged += 1
            parts: list[EngineCommand] = [
                self._dead_push(letter, delivery, name),
                Acknowledge(
                    consumer.number, delivery.message_id, delivery.channel, delivery.queue_id
                ),
            ]
            commands.append(Batch(self._number, GivenUp(consumer, number, delivery), parts))

    def _dead_push(self, letter: KeptMessage, delivery: InHand, name: str) -> Push:
        place = place_of(Destination(QUEUE_TYPE, name), self._context.names)
        priority = fields_of(letter).priority
        wire = OpenwireMessage(delivery.message_id, place.channel, letter, None, "", priority, 0)
        wire.size += self._around_of(place.channel)
        extras = self._context.extras(place)
        return Push(
            self._number,
            delivery.message_id,
            place.channel,
            QUEUE,
            False,
            False,
            wire.size,
            wire,
            extras,
        )

    def _gave_up(self, effect: Reply, given: GivenUp) -> Sequence[EngineCommand]:
        """Handle the result of a dead letter; if it failed, the message stays in flight to the
        consumer."""
        commands: list[EngineCommand] = []
        consumer = given.consumer
        if given.number in consumer.in_hand:
            if effect.code == RESULT_OK:
                self._take(consumer, given.number)
                self._open_window(consumer, commands)
            else:
                given.delivery.staged = False
                consumer.staged -= 1
                name = self._context.options.dead_letters
                self._fail(
                    AskedCommand(f"dead letter to {name!r}", 0), JMS, f"refused ({effect.code})"
                )
        self._close_ended(commands)
        return commands


def dead_letter_of(kept: KeptMessage, name: str, cause: str) -> KeptMessage | None:
    """The dead letter of a message, as ActiveMQ writes it; None if the message is not persistent.

    :param name: the name of the queue of dead letters.
    """
    message = fields_of(kept)
    if not message.persistent:
        return None
    try:
        entries = read_map(message.properties)
    except WireError:
        entries = []
    entries = [each for each in entries if each[0] not in (_CAUSE, _EXPIRATION)]
    entries.append((_CAUSE, primitives.STRING, cause))
    if message.expiration:
        entries.append((_EXPIRATION, primitives.LONG, message.expiration))
        message.expiration = 0
    message.properties = encode_map(entries)
    message.original_destination = message.destination
    message.destination = Destination(QUEUE_TYPE, name)
    message.redelivery_counter = 0
    return message.keep()
