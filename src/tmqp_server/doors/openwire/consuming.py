"""Consumers of a session of OpenWire: how they begin, get messages and end.

Each consumer is a branch of its connection, so it has its own deliveries and its own window, which
is its prefetch.  Its deliveries are numbered, and the number is sent as the broker's sequence of
the message.  The client uses it in its answers, and at the end of a consumer to tell which messages
the program received.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.constants import (
    PUT_BACK_START,
    RESULT_DUPLICATE,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_OK,
)
from tmqp_server.doors.jms.patterns import has_wildcards
from tmqp_server.doors.openwire.acknowledging import AcknowledgingSession
from tmqp_server.doors.openwire.answering import (
    INVALID_DESTINATION,
    INVALID_SELECTOR,
    JMS,
    OVER_LIMIT,
    AskedCommand,
    CommandError,
    fault_of_code,
)
from tmqp_server.doors.openwire.consumers import Consumer, InHand, JoinedConsumer, Pulled
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import OpenwireMessage, fields_of
from tmqp_server.doors.openwire.places import JmsPlace, plain_name
from tmqp_server.doors.selecting import FilterError
from tmqp_server.doors.selector import NoLocal, SelectorFilter, selector_filter
from tmqp_server.engine.commands import (
    CloseBranch,
    Grant,
    Join,
    OpenBranch,
    SetTerms,
    Terms,
    branch_number,
    index_of,
)
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_server.engine.effects import Deliver, Reply
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_wires.openwire.commands import (
    LAST_UNKNOWN,
    ConsumerControl,
    ConsumerInfo,
    MessagePull,
)
from tmqp_wires.openwire.ids import Destination
from tmqp_wires.openwire.messages import (
    KEPT_VERSION,
    KeptMessage,
    dispatch_frame,
    older_dispatch_frame,
)
from tmqp_wires.openwire.reading import read_kept_message

__all__ = ["ConsumerSession"]

_FIRST_KEPT: Final = 10
_COUNT_BITS: Final = 31
_DRAWN_DIGITS: Final = 8
_MS: Final = 1000.0
#: Seconds that a pull for an existing message waits, because the message may still be read from
#: disk.
_AT_ONCE_S: Final = 0.05
_MOST_PRIORITY: Final = 127


class ConsumerSession(AcknowledgingSession):
    """The consuming part of a session."""

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._next_index = 1
        # Each connection uses different numbers, so that a late answer, on the next connection of a
        # client, has no effect there.
        drawn = int(context.new_id()[:_DRAWN_DIGITS], 16)
        self._dispatched = drawn << _COUNT_BITS
        #: Deliveries to acknowledge when everything queued was written.
        self._unwanted: list[tuple[Consumer, int]] = []

    # -- the beginning ----------------------------------------------------------------------------

    def _consume(self, info: ConsumerInfo, commands: list[EngineCommand], now: float) -> None:
        destination = info.destination
        name = "" if destination is None else destination.name
        asked = self._asked(f"consumer of {name[:64]!r}", info)
        try:
            self._begin_consumer(info, asked, commands)
        except CommandError as error:
            self._fail(asked, error.name, str(error))

    def _begin_consumer(
        self, info: ConsumerInfo, asked: AskedCommand, commands: list[EngineCommand]
    ) -> None:
        """Begin a consumer of any kind.

        :raises CommandError: when it cannot begin.
        """
        consumer = self._new_consumer(info)
        places = self._places_of(info.destination)
        for place in places:
            if has_wildcards(place.destination.name):
                consumer.patterns.append(place)
            else:
                consumer.channels[place.channel] = place
        self._enter(consumer, asked, commands)
        asked.left = 0
        for place in list(consumer.channels.values()):
            self._join(consumer, place, asked, commands)

    def _new_consumer(self, info: ConsumerInfo) -> Consumer:
        """Create a consumer that has not begun.

        :raises CommandError: when it cannot begin.
        """
        limits = self._context.limits
        if info.consumer.key in self._consumers:
            raise CommandError(JMS, "a consumer with this id exists already")
        if len(self._by_index) >= limits.max_consumers:
            most = limits.max_consumers
            raise CommandError(OVER_LIMIT, f"a connection has at most {most} consumers")
        index = self._next_index
        self._next_index += 1
        prefetch = min(max(0, info.prefetch), limits.max_prefetch)
        number = branch_number(self._number, index)
        consumer = Consumer(info, index, number, prefetch, self._wire.version)
        consumer.filter = self._wanted_by(info)
        return consumer

    def _enter(
        self, consumer: Consumer, asked: AskedCommand, commands: list[EngineCommand]
    ) -> None:
        self._consumers[consumer.info.consumer.key] = consumer
        self._by_index[consumer.index] = consumer
        commands.append(
            OpenBranch(self._number, JoinedConsumer(asked, consumer, must=True), consumer.number)
        )

    def _wanted_by(self, info: ConsumerInfo) -> SubscriptionFilter | None:
        """The filter of a consumer; None for all messages.

        :raises CommandError: when its selector is invalid.
        """
        chosen: SubscriptionFilter | None = self._selector_of(info)
        if info.no_local and info.destination is not None and info.destination.is_topic:
            chosen = NoLocal(self._client_id, chosen)
        return chosen

    def _selector_of(self, info: ConsumerInfo) -> SelectorFilter | None:
        """The selector of a consumer; None without one.

        :raises CommandError: when the selector is invalid.
        """
        text = info.selector
        if text is None or not text.strip():
            return None
        try:
            return selector_filter(text, self._context.letters)
        except FilterError as error:
            raise CommandError(INVALID_SELECTOR, str(error)) from None

    def _join(
        self,
        consumer: Consumer,
        place: JmsPlace,
        asked: AskedCommand | None,
        commands: list[EngineCommand],
    ) -> None:
        """Let a consumer join one destination, which is created if it does not exist."""
        if asked is not None:
            asked.left += 1
        self._make_feed(place, commands)
        if not (place.is_temporary or consumer.kept_in):
            commands.append(self._create(place, JoinedConsumer(asked, consumer, must=False)))
        priority = max(0, min(consumer.info.priority, _MOST_PRIORITY))
        exclusive = consumer.info.exclusive
        terms = self._context.terms(consumer.window, priority or None, exclusive=exclusive)
        joined = JoinedConsumer(asked, consumer, must=True)
        commands.append(
            Join(
                consumer.number,
                joined,
                place.channel,
                0 if consumer.pulls else -1,
                filter=consumer.filter,
                terms=terms,
                creates=False,
            )
        )

    def _joined(self, effect: Reply, joined: JoinedConsumer) -> Sequence[EngineCommand]:
        """Handle the answer to one of the commands that begin a consumer."""
        code = effect.code
        asked = joined.asked
        if not joined.must or asked is None:
            return ()  # whether it is there after all shows when it is joined
        if code == RESULT_OK or (joined.makes and code == RESULT_DUPLICATE):
            self._settle(asked)
            return ()
        consumer = joined.consumer
        assert consumer is not None, "it must be joined"
        name, text = fault_of_code(code)
        if code == RESULT_LIMIT_EXCEEDED and consumer.kept_in and not joined.makes:
            name, text = JMS, "the durable subscription is in use"
        elif code == RESULT_NOT_FOUND:
            name = INVALID_DESTINATION
            text = "there is no such destination, and the client may not create it"
        self._fail(asked, name, text)
        return self._drop(consumer)

    def _drop(self, consumer: Consumer) -> Sequence[EngineCommand]:
        """Remove a consumer that could not begin."""
        key = consumer.info.consumer.key
        if self._consumers.get(key) is consumer:
            del self._consumers[key]
            self._end_durable(consumer)
        if self._by_index.pop(consumer.index, None) is None:
            return ()
        return (CloseBranch(self._number, None, consumer.number),)

    # -- the end ----------------------------------------------------------------------------------

    def _end_consumer(self, consumer: Consumer, last: int, commands: list[EngineCommand]) -> None:
        """End a consumer.  Its deliveries are put back; those up to *last* count as delivered.

        :param last: the last dispatch that the program received; see ``RemoveInfo``.
        """
        key = consumer.info.consumer.key
        del self._consumers[key]
        self._ended[key] = None
        if len(self._ended) > self._context.limits.max_consumers:
            del self._ended[next(iter(self._ended))]
        self._end_durable(consumer)
        if self._by_index.get(consumer.index) is not consumer:
            return  # it is still looked for
        if consumer.in_hand:
            # It must not get the messages that it puts back.
            consumer.prefetch = consumer.handed = 0
            consumer.pulling = False
            for channel in consumer.channels:
                commands.append(SetTerms(consumer.number, None, channel, Terms(0)))
        # From the end on: each goes to the front of its queue.
        for number in sorted(consumer.in_hand, reverse=True):
            if not consumer.in_hand[number].staged:
                counted = last == LAST_UNKNOWN or number <= last
                commands.append(self._release(consumer, number, PUT_BACK_START, counted=counted))
        if consumer.staged:
            consumer.ends = True
            return
        del self._by_index[consumer.index]
        commands.append(CloseBranch(self._number, None, consumer.number))

    def _end_durable(self, consumer: Consumer) -> None:
        """Let another consumer use the durable subscription of one that has ended."""

    def _make_feed(self, place: JmsPlace, commands: list[EngineCommand]) -> None:
        """Feed a queue from its virtual topic, if it has one."""

    def _is_unwanted(self, effect: Deliver, consumer: Consumer) -> bool:
        """Whether to acknowledge a message at once instead of sending it."""
        return False

    # -- dispatches -------------------------------------------------------------------------------

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery: the message as received, with the consumer's own fields."""
        consumer = self._by_index.get(index_of(number))
        if consumer is None or consumer.ends or self.closed or self._ending:
            return  # it goes to others when the branch ends
        message = effect.message
        channel = effect.channel
        kept = self._context.kept_of(message, channel)
        wire = message.wire
        if isinstance(wire, OpenwireMessage):
            if wire.reply_to is not None:
                self._make_known(wire.reply_to)
            if plain_name(wire.channel) != channel and not consumer.kept_in:
                kept = _moved(kept, consumer, channel)
        self._dispatched += 1
        if effect.wants_acknowledge:
            delivery = InHand(message.message_id, channel, message.queue_id, kept)
            consumer.in_hand[self._dispatched] = delivery
            if self._is_unwanted(effect, consumer):
                self._unwanted.append((consumer, self._dispatched))
                self.wants_written = True
                return
        if consumer.pulls:
            consumer.pulling = False
            consumer.pull_due = None
        head = consumer.head(channel)
        self._dispatch(head, kept, self._dispatched, message.put_backs)

    def _dispatch(self, head: bytes, kept: KeptMessage, number: int, redeliveries: int) -> None:
        version = self._wire.version
        if version >= _FIRST_KEPT:
            self._say_bytes(dispatch_frame(head, kept, number, redeliveries))
            return
        message = read_kept_message(kept.type, kept.raw, KEPT_VERSION)
        assert message.message_id is not None, "what is kept has an id"
        message.message_id.broker_sequence = number
        message.redelivery_counter = redeliveries
        self._say_bytes(older_dispatch_frame(head, message, redeliveries, version))

    def _make_known(self, destination: Destination) -> None:
        """Announce a temporary destination to the client before it sends an answer there."""

    # -- pulls ------------------------------------------------------------------------------------

    def _pull(self, pull: MessagePull, commands: list[EngineCommand], now: float) -> None:
        """Grant one message to a consumer that has no prefetch."""
        asked = self._asked("pull", pull)
        consumer = None if pull.consumer is None else self._consumers.get(pull.consumer.key)
        if consumer is None or not consumer.pulls:
            self._settle(asked)
            return
        consumer.pulling = True
        consumer.pull_due = now + pull.timeout / _MS if pull.timeout > 0 else None
        pulled = Pulled(consumer, last=pull.timeout < 0)
        commands += [Grant(consumer.number, channel, 1, pulled) for channel in consumer.channels]
        self._settle(asked)

    def _granted(self, pulled: Pulled, now: float) -> None:
        consumer = pulled.consumer
        if pulled.last and consumer.pulling:
            consumer.pull_due = now + _AT_ONCE_S

    def _pulls_due(self, now: float) -> list[EngineCommand]:
        """Answer pulls that have waited long enough with an empty dispatch."""
        commands: list[EngineCommand] = []
        for consumer in self._consumers.values():
            due = consumer.pull_due
            if due is not None and now >= due:
                consumer.pulling = False
                consumer.pull_due = None
                self._say(consumer.dispatch(None))
                commands += [Grant(consumer.number, each, 0) for each in consumer.channels]
        return commands

    def _next_pull_due(self) -> float | None:
        due: float | None = None
        for consumer in self._consumers.values():
            if consumer.pull_due is not None and (due is None or consumer.pull_due < due):
                due = consumer.pull_due
        return due

    def _control(self, control: ConsumerControl, commands: list[EngineCommand], now: float) -> None:
        """Change a consumer's prefetch."""
        asked = self._asked("consumer control", control)
        consumer = None if control.consumer is None else self._consumers.get(control.consumer.key)
        if consumer is not None and not consumer.pulls and control.prefetch > 0:
            consumer.prefetch = min(control.prefetch, self._context.limits.max_prefetch)
            self._open_window(consumer, commands)
        self._settle(asked)


def _moved(kept: KeptMessage, consumer: Consumer, channel: str) -> KeptMessage:
    """A message that was moved to another queue than its sender named, in ActiveMQ's form."""
    message = fields_of(kept)
    message.original_destination = message.destination
    message.destination = consumer.destination(channel)
    return message.keep()
