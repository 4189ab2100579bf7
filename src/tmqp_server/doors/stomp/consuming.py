"""MESSAGE, ACK and NACK of a session of STOMP.

Each subscription is a branch of its connection, so it has its own deliveries and its own window.
Its deliveries are numbered, and ``ack`` of a MESSAGE has the numbers of the subscription and the
delivery.  In the mode ``auto`` a message is acknowledged when the kernel has taken it; in
``client`` an ACK counts for everything in flight up to its message; in ``client-individual`` for
its message alone.  Topics want no acknowledgements, so an ACK of their messages has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import (
    PUT_BACK_END,
)
from tmqp_server.doors.answers import PlainAnswers
from tmqp_server.doors.jms.in_hand import HeldDelivery
from tmqp_server.doors.jms.in_hand import number_of as lapsed_number
from tmqp_server.doors.jms.rows import RowMaker
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.delivering import in_version
from tmqp_server.doors.stomp.message import is_keyless, number_of
from tmqp_server.doors.stomp.places import Place
from tmqp_server.doors.stomp.sending import ANSWER_BYTES, SendingSession, StagedFrames
from tmqp_server.doors.stomp.writing import AskedFrame, FrameError
from tmqp_server.doors.waiting import NOTHING
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Command,
    Release,
    Terms,
    index_of,
)
from tmqp_server.engine.effects import Deliver, Lapsed
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_wires.stomp import StompFrame
from tmqp_wires.stomp.frames import V1_0, V1_1, V1_2, header_lines

__all__ = ["AUTO", "MODES", "OF_ID", "DeliveringSession", "StompSubscription"]

AUTO: Final = "auto"
_CLIENT: Final = "client"
_INDIVIDUAL: Final = "client-individual"
#: The modes of acknowledgement.
MODES: Final = (AUTO, _CLIENT, _INDIVIDUAL)
#: What the key of a subscription with an id begins with.
OF_ID: Final = "id:"


@final
class StompSubscription:
    """One subscription.  ``key`` is its id, or its destination if it has none; ``in_hand`` are its
    unanswered deliveries by number, in the order in which they were sent; ``last`` is the number of
    the newest delivery.  ``channels`` are the channels that it joins, each with the client's
    destination for it.  ``kept_as`` is the channel of a durable subscription, empty for none.
    Channels that match its ``patterns`` are joined with its filter (``wanted``) and ``terms``."""

    __slots__ = (
        "channels",
        "destination",
        "in_hand",
        "index",
        "kept_as",
        "key",
        "last",
        "mode",
        "number",
        "opened",
        "patterns",
        "terms",
        "wanted",
    )

    def __init__(self, key: str, destination: str, mode: str, index: int, number: int) -> None:
        self.key = key
        self.destination = destination
        self.mode = mode
        self.index = index
        #: Its branch, once it is ``opened``.
        self.number = number
        self.opened = False
        self.channels: dict[str, str] = {}
        self.kept_as = ""
        self.patterns: list[Place] = []
        self.wanted: SubscriptionFilter | None = None
        self.terms: Terms | None = None
        self.in_hand: dict[int, HeldDelivery] = {}
        self.last = 0


@final
class _Staged:
    """An answer in a transaction: its subscription, and the delivery with its number."""

    __slots__ = ("delivery", "number", "subscription")

    def __init__(
        self, subscription: StompSubscription, number: int, delivery: HeldDelivery
    ) -> None:
        self.subscription = subscription
        self.number = number
        self.delivery = delivery


class DeliveringSession(SendingSession):
    """The consuming part of a session."""

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._subscriptions: dict[str, StompSubscription] = {}
        self._by_index: dict[int, StompSubscription] = {}
        self._next_index = 1
        #: Subscriptions of the mode ``auto`` with deliveries that are not written.
        self._unwritten: dict[int, StompSubscription] = {}
        self._staged: dict[str, list[_Staged]] = {}
        self._rows = RowMaker(is_keyless)

    # -- MESSAGE --------------------------------------------------------------------------------

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery after the headers that identify it for the client."""
        subscription = self._by_index.get(index_of(number))
        if subscription is None or self.closed or self._ending:
            return  # it goes to others when the branch ends
        message, channel = effect.message, effect.channel
        subscription.last += 1
        in_hand = subscription.last
        destination = subscription.destination
        if len(subscription.channels) > 1 or subscription.patterns:
            names = self._context.names
            exact = names.exact_channel(names.foreign_name(channel))
            destination = subscription.channels.get(exact, destination)
        headers = self._own_headers(subscription, destination, message.message_id)
        if subscription.mode != AUTO and self._stomp.version == V1_2:
            headers.append(("ack", f"{subscription.index}-{in_hand}"))
        if effect.wants_acknowledge:
            delivery = HeldDelivery(message.message_id, channel, message.queue_id)
            subscription.in_hand[in_hand] = delivery
            if subscription.mode == AUTO:
                self._unwritten[subscription.index] = subscription
                self.wants_written = True
        self._say_message(headers, shared)

    def _own_headers(
        self, subscription: StompSubscription, destination: str, message_id: str
    ) -> list[tuple[str, str]]:
        """The headers that identify a MESSAGE for the client."""
        headers = [("destination", destination), ("message-id", message_id)]
        if subscription.key.startswith(OF_ID):
            headers.append(("subscription", subscription.key[len(OF_ID) :]))
        return headers

    def _say_message(self, headers: list[tuple[str, str]], shared: bytes) -> None:
        """Queue a MESSAGE.

        :param shared: the result of ``delivery_bytes``.
        """
        version = self._stomp.version
        self._say(b"MESSAGE\n" + header_lines(headers, version) + in_version(shared, version))

    def written(self, now: float) -> Sequence[Command]:
        """Acknowledge the written deliveries of the mode ``auto``."""
        if self.closed or not self._unwritten:
            return NOTHING
        unwritten, self._unwritten = self._unwritten, {}
        commands: list[Command] = []
        for subscription in unwritten.values():
            commands += self._acknowledged(subscription, list(subscription.in_hand))
        return commands

    # -- ACK and NACK ---------------------------------------------------------------------------

    def _answer(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        asked = self._asked(frame.command, frame)
        try:
            subscription, numbers = self._meant(frame)
        except FrameError as error:
            commands += self._fail(asked, str(error))
            return
        positive = frame.command == "ACK"
        name = frame.find("transaction")
        if name is not None:
            self._stage(name, subscription, numbers, positive, asked, commands)
            return
        if subscription is not None:
            if positive:
                commands += self._acknowledged(subscription, numbers)
            else:
                for number in numbers:
                    delivery = subscription.in_hand.pop(number)
                    commands.append(self._refusal(subscription, delivery))
        commands += self._settle(asked)

    def _meant(self, frame: StompFrame) -> tuple[StompSubscription | None, list[int]]:
        """The subscription and the deliveries that an answer is about; none if they are already
        answered or need no answer.

        :raises FrameError: when it names a MESSAGE that was never sent.
        """
        number = 0
        if self._stomp.version in (V1_0, V1_1):
            subscription, number = self._named(frame)
        else:
            text = frame.get("id")
            index, dash, last = text.partition("-")
            number = number_of(last)
            at = number_of(index)
            if not dash or number < 1 or not 1 <= at < self._next_index:
                raise FrameError(f"no MESSAGE had the ack {text[:32]!r}")
            subscription = self._by_index.get(at)
            if subscription is not None and number > subscription.last:
                raise FrameError(f"no MESSAGE had the ack {text[:32]!r}")
        if subscription is not None and subscription.mode == AUTO:
            return subscription, []
        if subscription is None or number not in subscription.in_hand:
            return None, []
        if subscription.mode == _INDIVIDUAL:
            return subscription, [number]
        numbers: list[int] = []
        for each in subscription.in_hand:
            if each > number:
                break
            numbers.append(each)
        return subscription, numbers

    def _named(self, frame: StompFrame) -> tuple[StompSubscription | None, int]:
        """The subscription and the number of the oldest delivery with this message id; only in the
        named subscription, if one is named.  None and 0 if there is none.

        :raises FrameError: when the header ``message-id`` is missing.
        """
        name = frame.find("message-id")
        if name is None:
            raise FrameError("the header message-id is missing")
        said = frame.find("subscription")
        found = list(self._subscriptions.values())
        if said is not None:
            subscription = self._subscriptions.get(OF_ID + said)
            found = [] if subscription is None else [subscription]
        for subscription in found:
            for number, delivery in subscription.in_hand.items():
                if delivery.message_id == name:
                    return subscription, number
        return None, 0

    def _acknowledged(self, subscription: StompSubscription, numbers: list[int]) -> list[Command]:
        """Acknowledge deliveries, those of one queue together."""
        by_queue: dict[tuple[str, int], list[str]] = {}
        for number in numbers:
            delivery = subscription.in_hand.pop(number)
            queue = delivery.channel, delivery.queue_id
            by_queue.setdefault(queue, []).append(delivery.message_id)
        branch = subscription.number
        return [
            AcknowledgeRun(branch, channel, queue_id, ids, PlainAnswers(), self._rows.notes)
            for (channel, queue_id), ids in by_queue.items()
        ]

    def _refusal(self, subscription: StompSubscription, delivery: HeldDelivery) -> Release:
        """The command to put back a refused delivery, which counts as an attempt."""
        return Release(
            subscription.number,
            None,
            delivery.message_id,
            delivery.channel,
            delivery.queue_id,
            PUT_BACK_END,
        )

    def _forget_lapsed(self, effect: Lapsed) -> None:
        """Forget a delivery that has lapsed, so that later answers to it have no effect."""
        subscription = self._by_index.get(index_of(effect.session))
        if subscription is None:
            return
        number = lapsed_number(subscription.in_hand, effect)
        if number:
            del subscription.in_hand[number]
            return
        for staged in self._staged.values():
            own = {each.number: each for each in staged if each.subscription is subscription}
            held = {number: each.delivery for number, each in own.items()}
            number = lapsed_number(held, effect)
            if number:
                staged.remove(own[number])  # it is not to come back by ABORT
                return

    # -- answers in transactions ----------------------------------------------------------------

    def _stage(
        self,
        name: str,
        subscription: StompSubscription | None,
        numbers: list[int],
        positive: bool,
        asked: AskedFrame,
        commands: list[Command],
    ) -> None:
        """Keep answers until COMMIT; the deliveries stay in flight until then."""
        transaction = self._transactions.get(name)
        if transaction is None:
            commands += self._fail(asked, f"there is no transaction {name[:64]!r}")
            return
        if not numbers and (subscription is None or subscription.mode != AUTO):
            # The rest of the transaction must not be committed without it.
            text = "the message is answered for, or its subscription has ended"
            commands += self._fail(asked, text)
            return
        for number in numbers:
            assert subscription is not None, "they are its own"
            delivery = subscription.in_hand.pop(number)
            self._staged.setdefault(name, []).append(_Staged(subscription, number, delivery))
            command: Command = self._refusal(subscription, delivery)
            if positive:
                command = Acknowledge(
                    subscription.number,
                    delivery.message_id,
                    delivery.channel,
                    delivery.queue_id,
                )
            if not self._add(transaction, command, ANSWER_BYTES, asked, commands):
                return
        commands += self._settle(asked)

    def _abort(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        name = frame.get("transaction")
        asked = self._asked(f"ABORT of {name[:64]!r}", frame)
        if self._take_transaction(name) is None:
            commands += self._fail(asked, "there is no such transaction")
            return
        self._take_back(self._staged.pop(name, []))
        commands += self._settle(asked)

    def _take_back(self, staged: list[_Staged]) -> None:
        """Undo the answers of an aborted transaction: their deliveries are unanswered again."""
        touched: dict[int, StompSubscription] = {}
        for each in staged:
            subscription = each.subscription
            if subscription.index not in self._by_index:
                continue  # it went to others when that ended
            subscription.in_hand[each.number] = each.delivery
            touched[subscription.index] = subscription
        for subscription in touched.values():
            subscription.in_hand = dict(sorted(subscription.in_hand.items()))

    def _parts_of(self, name: str, transaction: StagedFrames) -> list[Command]:
        """The commands of a transaction that is committed.

        :raises FrameError: when it answers deliveries of a subscription that has ended, because
            these went to other consumers.
        """
        for each in self._staged.pop(name, ()):
            if each.subscription.index not in self._by_index:
                raise FrameError("it acknowledges messages of a subscription that has ended")
        return transaction.commands
