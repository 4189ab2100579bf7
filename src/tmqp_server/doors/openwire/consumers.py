"""Consumers of a session of OpenWire, and what they have in flight."""

from __future__ import annotations

from typing import final

from tmqp_server.doors.jms.in_hand import HeldDelivery
from tmqp_server.doors.openwire.answering import AskedCommand
from tmqp_server.doors.openwire.places import JmsPlace, plain_name
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_wires.openwire.commands import ConsumerInfo
from tmqp_wires.openwire.ids import Destination, MessageId
from tmqp_wires.openwire.messages import KeptMessage, MessageDispatch

__all__ = ["Consumer", "InHand", "JoinedConsumer", "Pulled", "StagedAnswer"]


@final
class InHand(HeldDelivery):
    """An unanswered delivery.  ``handed`` says that the program has received it, ``staged`` that an
    open transaction or a pending dead letter answers it; ``kept`` is the message."""

    __slots__ = ("handed", "kept", "staged")

    def __init__(self, message_id: str, channel: str, queue_id: int, kept: KeptMessage) -> None:
        super().__init__(message_id, channel, queue_id)
        self.kept = kept
        self.handed = False
        self.staged = False


@final
class Consumer:
    """One consumer: a branch of its connection.

    ``in_hand`` are its unanswered deliveries by the number of their dispatch, in order.  ``handed``
    is how many of them do not count in its window, ``staged`` how many are answered in open
    transactions.  ``pulls`` says that it asks for each message; ``pulling`` that it waits for one,
    until ``pull_due``.  ``ends`` says that it has ended except for its transactions.
    """

    __slots__ = (
        "_heads",
        "channels",
        "kept_in",
        "ends",
        "filter",
        "granted",
        "handed",
        "in_hand",
        "index",
        "info",
        "number",
        "patterns",
        "prefetch",
        "pull_due",
        "pulling",
        "staged",
        "version",
    )

    def __init__(
        self, info: ConsumerInfo, index: int, number: int, prefetch: int, version: int
    ) -> None:
        self.info = info
        self.index = index
        #: Its branch.
        self.number = number
        self.prefetch = prefetch
        self.version = version
        self.filter: SubscriptionFilter | None = None
        self.channels: dict[str, JmsPlace] = {}
        self.patterns: list[JmsPlace] = []
        #: The channel of its durable subscription, empty for none.
        self.kept_in = ""
        self.in_hand: dict[int, InHand] = {}
        self.handed = 0
        self.staged = 0
        #: The window that the broker knows of.
        self.granted = self.window
        self.pulling = False
        self.pull_due: float | None = None
        self.ends = False
        self._heads: dict[str, bytes] = {}

    @property
    def pulls(self) -> bool:
        """Whether it asks for each message."""
        return self.prefetch == 0

    @property
    def window(self) -> int:
        """How many unanswered deliveries it may have now; -1 for a consumer that pulls."""
        return -1 if self.pulls else self.prefetch + self.handed

    def head(self, channel: str) -> bytes:
        """The first bytes of a dispatch from this channel."""
        found = self._heads.get(channel)
        if found is None:
            found = self.dispatch(self.destination(channel)).head(self.version)
            self._heads[channel] = found
        return found

    def destination(self, channel: str) -> Destination | None:
        """The consumer's own destination for a channel.

        :param channel: its name without the mark of exact names.
        """
        for name, place in self.channels.items():
            if len(self.channels) == 1 or plain_name(name) == channel:
                return place.destination
        return self.info.destination

    def dispatch(self, destination: Destination | None) -> MessageDispatch:
        """A dispatch without a message."""
        return MessageDispatch(self.info.consumer, destination, None)

    def find(self, wanted: MessageId | None) -> int:
        """The number of the dispatch with this message id; 0 if none is in flight."""
        if wanted is None:
            return 0
        if wanted.broker_sequence in self.in_hand:
            return wanted.broker_sequence
        name = str(wanted)
        for number, each in self.in_hand.items():
            if name in (each.message_id, f"ID:{each.message_id}"):
                return number
        return 0

    def lacks(self, found: list[int], wanted: int, destination: Destination | None) -> bool:
        """Whether an answer is about a delivery that is no longer in flight.

        Messages of a topic are never in flight, unless the subscription is durable, so their
        answers lack nothing.

        :param found: the dispatches in flight that the answer is about.
        :param wanted: the number of dispatches that it is about.
        :param destination: the destination of the last one.
        """
        if not self.kept_in:
            if not found:
                return destination is None or not destination.is_topic
            if self._has_topics():
                return False  # the rest may have come from there
        return len(found) < wanted

    def _has_topics(self) -> bool:
        places = [*self.channels.values(), *self.patterns]
        return any([each.destination.is_topic for each in places])

    def between(self, first: MessageId | None, last: MessageId | None, count: int) -> list[int]:
        """The numbers of the dispatches that an answer is about, in order."""
        end = self.find(last)
        if not end:
            return []
        if count == 1:
            return [end]
        begin = self.find(first)
        found: list[int] = []
        for number in self.in_hand:
            if number > end:
                break
            if number >= begin:
                found.append(number)
        return found


@final
class StagedAnswer:
    """An answer in a transaction: its consumer, and the number of the dispatch."""

    __slots__ = ("consumer", "number")

    def __init__(self, consumer: Consumer, number: int) -> None:
        self.consumer = consumer
        self.number = number


@final
class JoinedConsumer:
    """The token of the commands that begin a consumer.  ``must`` says that the command must
    succeed; ``makes`` that it creates something, which may already exist."""

    __slots__ = ("asked", "consumer", "makes", "must")

    def __init__(
        self,
        asked: AskedCommand | None,
        consumer: Consumer | None,
        *,
        must: bool,
        makes: bool = False,
    ) -> None:
        self.asked = asked
        self.consumer = consumer
        self.must = must
        self.makes = makes


@final
class Pulled:
    """The token of a pull; ``last`` says that the consumer does not wait for further messages."""

    __slots__ = ("consumer", "last")

    def __init__(self, consumer: Consumer, *, last: bool) -> None:
        self.consumer = consumer
        self.last = last
