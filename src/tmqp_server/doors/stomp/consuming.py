"""SUBSCRIBE, ACK and NACK of a session of STOMP.

Each subscription is a branch of its connection, so it has its own deliveries and its own window.
What it has in hand is numbered, and ``ack`` of a MESSAGE is the subscription's number and this one.
In the mode ``auto`` a message is acknowledged when the kernel has taken it; in ``client`` an ACK
counts for everything in hand up to its message; in ``client-individual`` for its message alone.
A topic wants no acknowledgement, so an ACK of its messages means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import (
    PUT_BACK_END,
    RESULT_NOT_FOUND,
    RESULT_OK,
)
from tmqp_server.doors.answers import PlainAnswers
from tmqp_server.doors.selecting import FilterError
from tmqp_server.doors.selector import selector_filter
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.message import QUEUE, number_of
from tmqp_server.doors.stomp.places import Place
from tmqp_server.doors.stomp.runs import RowMaker
from tmqp_server.doors.stomp.sending import ANSWER_BYTES, SendingSession, StagedFrames
from tmqp_server.doors.stomp.writing import AskedFrame, FrameError, words_of
from tmqp_server.doors.waiting import NOTHING
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    CloseBranch,
    Command,
    CreateQueue,
    Join,
    OpenBranch,
    Release,
    Terms,
    branch_number,
    index_of,
)
from tmqp_server.engine.effects import Deliver, Reply
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_wires.stomp import StompFrame
from tmqp_wires.stomp.frames import V1_0, V1_1, V1_2, header_lines, read_header_lines

__all__ = ["Joined", "NoLocal", "StompSubscription", "SubscribingSession"]

_AUTO: Final = "auto"
_CLIENT: Final = "client"
_INDIVIDUAL: Final = "client-individual"
_MODES: Final = (_AUTO, _CLIENT, _INDIVIDUAL)
_PREFETCH: Final = "activemq.prefetchSize"
_PRIORITY: Final = "activemq.priority"
_MOST_PRIORITY: Final = 127
#: Headers of SUBSCRIBE that ask for what is not served, when they are not false.
_NOT_SERVED: Final = (
    "browser",
    "activemq.exclusive",
    "activemq.retroactive",
    "activemq.subscriptionName",
    "durable-subscription-name",
    "durable-subscriber-name",
)


@final
class NoLocal(SubscriptionFilter):
    """Accepts what others have sent.

    :param source: the client.
    :param also: what else must accept it; None for nothing.
    """

    def __init__(self, source: str, also: SubscriptionFilter | None) -> None:
        self._source = source
        self._also = also

    def accepts(self, message: Message) -> bool:
        """Whether it is another's."""
        if message.source == self._source:
            return False
        return self._also is None or self._also.accepts(message)

    def identity(self) -> object:
        """The client, and what else is wanted."""
        return "no-local", self._source, None if self._also is None else self._also.identity()


@final
class _InHand:
    """A delivery that is not answered for."""

    __slots__ = ("message_id", "queue_id")

    def __init__(self, message_id: str, queue_id: int) -> None:
        self.message_id = message_id
        self.queue_id = queue_id


@final
class StompSubscription:
    """One subscription.  ``key`` is its id, or what it is called without one; ``in_hand`` are its
    unanswered deliveries by number, in the order in which they were sent; ``last`` is the number of
    the newest delivery."""

    __slots__ = ("channel", "destination", "in_hand", "index", "key", "last", "mode", "number")

    def __init__(
        self, key: str, destination: str, channel: str, mode: str, index: int, number: int
    ) -> None:
        self.key = key
        self.destination = destination
        self.channel = channel
        self.mode = mode
        self.index = index
        #: Its branch.
        self.number = number
        self.in_hand: dict[int, _InHand] = {}
        self.last = 0


@final
class _Staged:
    """An answer in a transaction: of which subscription, and which delivery."""

    __slots__ = ("delivery", "number", "subscription")

    def __init__(self, subscription: StompSubscription, number: int, delivery: _InHand) -> None:
        self.subscription = subscription
        self.number = number
        self.delivery = delivery


@final
class Joined:
    """What the answers to SUBSCRIBE are about: each of its commands must succeed."""

    __slots__ = ("asked", "creates")

    def __init__(self, asked: AskedFrame, *, creates: bool = False) -> None:
        self.asked = asked
        #: It is about making the queue, which may be there, or be another's to make.
        self.creates = creates


class SubscribingSession(SendingSession):
    """The part of a session that consumes."""

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._subscriptions: dict[str, StompSubscription] = {}
        self._by_index: dict[int, StompSubscription] = {}
        self._next_index = 1
        #: Of the mode ``auto``, what is queued.
        self._unwritten: dict[int, StompSubscription] = {}
        self._staged: dict[str, list[_Staged]] = {}
        self._rows = RowMaker()

    # -- SUBSCRIBE ------------------------------------------------------------------------------

    def _subscribe(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        destination = frame.get("destination")
        asked = self._asked(f"SUBSCRIBE to {destination[:64]!r}", frame)
        try:
            self._open(frame, destination, asked, commands)
        except FrameError as error:
            commands += self._fail(asked, str(error))

    def _open(
        self, frame: StompFrame, destination: str, asked: AskedFrame, commands: list[Command]
    ) -> None:
        place = self._place(destination)
        key = self._key_of(frame)
        mode = frame.get("ack") or _AUTO
        limits = self._context.limits
        if mode not in _MODES:
            raise FrameError(f"ack is auto, client or client-individual, not {mode[:32]!r}")
        if key in self._subscriptions:
            raise FrameError("there is a subscription with this id already")
        if len(self._subscriptions) >= limits.max_subscriptions:
            raise FrameError(f"a connection has at most {limits.max_subscriptions} subscriptions")
        for name in _NOT_SERVED:
            if frame.get(name).lower() not in ("", "false"):
                raise FrameError(f"{name} is not served")
        terms = self._terms_of(frame)
        wanted = self._wanted_by(frame)
        self._make_own(place, asked, commands)
        index = self._next_index
        self._next_index += 1
        number = branch_number(self._number, index)
        subscription = StompSubscription(key, destination, place.channel, mode, index, number)
        self._subscriptions[key] = subscription
        self._by_index[index] = subscription
        if not place.is_temporary:
            commands.append(self._create(place, asked))
        commands.append(OpenBranch(self._number, Joined(asked), number))
        joined = Joined(asked)
        commands.append(
            Join(number, joined, place.channel, filter=wanted, terms=terms, creates=False)
        )

    def _create(self, place: Place, asked: AskedFrame) -> Command:
        shape = self._context.shape(place)
        request = Joined(asked, creates=True)
        return CreateQueue(self._number, request, place.channel, QUEUE, shape)

    def _key_of(self, frame: StompFrame) -> str:
        """What a subscription is called; before 1.1 that may be its destination.

        :raises FrameError: when it has no id and needs one.
        """
        found = frame.find("id")
        if found is not None:
            return f"id:{found}"
        if self._stomp.version != V1_0:
            raise FrameError("the header id is missing")
        return frame.get("destination")

    def _wanted_by(self, frame: StompFrame) -> SubscriptionFilter | None:
        """Which messages a subscription wants; None for all.

        :raises FrameError: for a selector that cannot be understood.
        """
        chosen: SubscriptionFilter | None = None
        text = frame.get("selector")
        if text.strip():
            try:
                chosen = selector_filter(text, self._context.letters, converts=True)
            except FilterError as error:
                raise FrameError(str(error)) from None
        if frame.get("activemq.noLocal").lower() == "true":
            chosen = NoLocal(self._client_id, chosen)
        return chosen

    def _terms_of(self, frame: StompFrame) -> Terms:
        """How a subscription wants its messages.

        :raises FrameError: for a number that makes no sense.
        """
        context = self._context
        window = context.options.prefetch
        said = frame.find(_PREFETCH)
        if said is not None:
            window = number_of(said)
            most = context.limits.max_prefetch
            if not 1 <= window <= most:
                raise FrameError(f"{_PREFETCH} is a number from 1 to {most}, not {said[:32]!r}")
        priority: int | None = None
        said = frame.find(_PRIORITY)
        if said is not None:
            priority = number_of(said)
            if not 0 <= priority <= _MOST_PRIORITY:
                raise FrameError(f"{_PRIORITY} is a number from 0 to 127, not {said[:32]!r}")
        return context.terms(window, priority)

    def _subscribed(self, effect: Reply, joined: Joined) -> Sequence[Command]:
        """One of the commands of a SUBSCRIBE was answered."""
        code = effect.code
        if joined.creates:
            # Whether it is there after all shows when it is joined.
            return NOTHING
        if code == RESULT_OK:
            return self._settle(joined.asked)
        if code == RESULT_NOT_FOUND:
            text = "there is no such destination, and it may not be made"
            return self._fail(joined.asked, text)
        return self._fail(joined.asked, words_of(code))

    def _unsubscribe(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        asked = self._asked("UNSUBSCRIBE", frame)
        try:
            key = self._key_of(frame)
        except FrameError as error:
            commands += self._fail(asked, str(error))
            return
        subscription = self._subscriptions.pop(key, None)
        if subscription is None:
            commands += self._fail(asked, "there is no such subscription")
            return
        del self._by_index[subscription.index]
        self._unwritten.pop(subscription.index, None)
        commands.append(CloseBranch(self._number, asked, subscription.number))

    # -- MESSAGE --------------------------------------------------------------------------------

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery behind what tells the client which one it is."""
        subscription = self._by_index.get(index_of(number))
        if subscription is None or self.closed or self._ending:
            return  # it goes to others when the branch ends
        message = effect.message
        subscription.last += 1
        in_hand = subscription.last
        headers = [("destination", subscription.destination), ("message-id", message.message_id)]
        if subscription.key.startswith("id:"):
            headers.append(("subscription", subscription.key[3:]))
        if subscription.mode != _AUTO and self._stomp.version == V1_2:
            headers.append(("ack", f"{subscription.index}-{in_hand}"))
        if effect.wants_acknowledge:
            subscription.in_hand[in_hand] = _InHand(message.message_id, message.queue_id)
            if subscription.mode == _AUTO:
                self._unwritten[subscription.index] = subscription
                self.wants_written = True
        version = self._stomp.version
        head = b"MESSAGE\n" + header_lines(headers, version)
        self._say(head + _in_version(shared, version))

    def written(self, now: float) -> Sequence[Command]:
        """What has left is acknowledged in the mode ``auto``."""
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
        """The deliveries that an answer is about; none when they were answered for, or need not be.

        :raises FrameError: when it names nothing that was ever sent.
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
                raise FrameError(f"no MESSAGE has had the ack {text[:32]!r}")
            subscription = self._by_index.get(at)
            if subscription is not None and number > subscription.last:
                raise FrameError(f"no MESSAGE has had the ack {text[:32]!r}")
        if subscription is None or number not in subscription.in_hand:
            return None, []
        if subscription.mode == _AUTO:
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
        """The oldest delivery in hand of this message, of the subscription if that is named.

        :raises FrameError: when no message is named.
        """
        name = frame.find("message-id")
        if name is None:
            raise FrameError("the header message-id is missing")
        said = frame.find("subscription")
        found = list(self._subscriptions.values())
        if said is not None:
            subscription = self._subscriptions.get(f"id:{said}")
            found = [] if subscription is None else [subscription]
        for subscription in found:
            for number, delivery in subscription.in_hand.items():
                if delivery.message_id == name:
                    return subscription, number
        return None, 0

    def _acknowledged(self, subscription: StompSubscription, numbers: list[int]) -> list[Command]:
        """Acknowledge deliveries, those of one queue in a row together."""
        by_queue: dict[int, list[str]] = {}
        for number in numbers:
            delivery = subscription.in_hand.pop(number)
            by_queue.setdefault(delivery.queue_id, []).append(delivery.message_id)
        branch, channel = subscription.number, subscription.channel
        return [
            AcknowledgeRun(branch, channel, queue_id, ids, PlainAnswers(), self._rows.notes)
            for queue_id, ids in by_queue.items()
        ]

    def _refusal(self, subscription: StompSubscription, delivery: _InHand) -> Release:
        """Give a delivery back, which counts."""
        return Release(
            subscription.number,
            None,
            delivery.message_id,
            subscription.channel,
            delivery.queue_id,
            PUT_BACK_END,
        )

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
        """Keep answers until COMMIT; until then the deliveries are in nobody else's hands."""
        transaction = self._transactions.get(name)
        if transaction is None:
            commands += self._fail(asked, f"there is no transaction {name[:64]!r}")
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
                    subscription.channel,
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
        """What was answered in a transaction that came to nothing is in hand again."""
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
        """Without answers of subscriptions that have ended."""
        self._staged.pop(name, None)
        live = {each.number for each in self._subscriptions.values()}
        live.add(self._number)
        return [each for each in transaction.commands if _session_of(each) in live]


def _session_of(command: Command) -> int:
    number: int = getattr(command, "session")  # noqa: B009 - they are all of sessions
    return number


def _in_version(shared: bytes, version: str) -> bytes:
    """A message in the form of 1.2 as an older version writes it: its escapes differ."""
    head, _, rest = shared.partition(b"\n\n")
    if version == V1_2 or b"\\" not in head:
        return shared
    headers = read_header_lines(head.decode("utf-8"), V1_2)
    return header_lines(headers, version) + b"\n" + rest
