"""SUBSCRIBE and UNSUBSCRIBE of a session of STOMP.

A subscription joins one channel, or several where its destination names several, with commas.  A
durable one (``activemq.subscriptionName``) joins the queue that keeps a topic's messages for its
client (``doors/jms/durable.py``).  One with ``browser:true`` joins nothing; it gets the messages
that are in the queue (``browsing.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_DUPLICATE, RESULT_LIMIT_EXCEEDED, RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.doors.jms.durable import (
    DurableSubscription,
    begin,
    durable_channel,
    look,
    waits_for,
)
from tmqp_server.doors.selecting import FilterError
from tmqp_server.doors.selector import NoLocal, SelectorFilter, selector_filter
from tmqp_server.doors.stomp.browsing import BrowsingSession
from tmqp_server.doors.stomp.consuming import AUTO, MODES, OF_ID, StompSubscription
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.message import QUEUE, number_of
from tmqp_server.doors.stomp.places import Place
from tmqp_server.doors.stomp.writing import AskedFrame, FrameError, words_of
from tmqp_server.doors.waiting import NOTHING
from tmqp_server.engine.commands import (
    CloseBranch,
    Command,
    CreateQueue,
    Join,
    OpenBranch,
    RemoveChannel,
    Terms,
    branch_number,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_wires.stomp import StompFrame
from tmqp_wires.stomp.frames import V1_0

__all__ = ["Joined", "Looked", "SubscribingSession"]

_PREFETCH: Final = "activemq.prefetchSize"
_PRIORITY: Final = "activemq.priority"
_MOST_PRIORITY: Final = 127
#: The headers by which clients name durable subscriptions: those of ActiveMQ and of others.
_DURABLE: Final = (
    "activemq.subscriptionName",
    "durable-subscription-name",
    "durable-subscriber-name",
)
#: Headers of SUBSCRIBE that ask for an unsupported feature, unless they are ``false``.
_NOT_SERVED: Final = ("activemq.retroactive",)
_EXCLUSIVE: Final = "activemq.exclusive"


@final
class Joined:
    """The token of the commands of a SUBSCRIBE.  A command must succeed unless ``must`` is false.
    Commands with ``makes`` create something that may already exist, and are answered when it is on
    disk.  When these and the ``last`` one are answered, all have succeeded."""

    __slots__ = ("asked", "last", "makes", "must", "subscription")

    def __init__(
        self,
        asked: AskedFrame,
        subscription: StompSubscription,
        *,
        must: bool = True,
        makes: bool = False,
        last: bool = False,
    ) -> None:
        self.asked = asked
        self.subscription = subscription
        self.must = must
        self.makes = makes
        self.last = last


@final
class Looked:
    """The token of the lookup of a durable subscription."""

    __slots__ = ("asked", "subscription", "terms", "wanted")

    def __init__(
        self,
        asked: AskedFrame,
        subscription: StompSubscription,
        durable: DurableSubscription,
        terms: Terms,
    ) -> None:
        self.asked = asked
        self.subscription = subscription
        self.wanted = durable
        self.terms = terms


class SubscribingSession(BrowsingSession):
    """The subscribing part of a session."""

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        #: The client-id of CONNECT; empty for none.
        self._chosen_id = ""

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
        places = self._places_of(destination)
        mode = frame.get("ack") or AUTO
        if mode not in MODES:
            raise FrameError(f"ack is auto, client or client-individual, not {mode[:32]!r}")
        for name in _NOT_SERVED:
            if _says(frame, name):
                raise FrameError(f"{name} is not served")
        terms = self._terms_of(frame)
        durable = self._durable_of(frame, places)
        browses = _says(frame, "browser")
        several = len(places) > 1 or places[0].pattern != ""
        if browses and (durable is not None or several or places[0].is_topic):
            raise FrameError("a browser is for one queue")
        wanted = self._wanted_by(frame)
        subscription = self._new_subscription(self._key_of(frame), destination, mode)
        for place in places:
            if not place.pattern:
                subscription.channels[place.channel] = place.destination
            self._make_own(place, asked, commands)
        if browses:
            self._browse(subscription, places[0].channel, wanted, asked, commands)
        elif durable is None:
            self._join(subscription, places, wanted, terms, asked, commands)
        else:
            subscription.kept_as = durable.channel
            request = Looked(asked, subscription, durable, terms)
            commands.append(look(self._number, request, durable))

    def _new_subscription(self, key: str, destination: str, mode: str) -> StompSubscription:
        """Create a subscription that has joined nothing.

        :raises FrameError: when its key is in use, or there are too many subscriptions.
        """
        most = self._context.limits.max_subscriptions
        if key in self._subscriptions:
            raise FrameError("a subscription with this id exists already")
        if len(self._subscriptions) >= most:
            raise FrameError(f"a connection has at most {most} subscriptions")
        index = self._next_index
        self._next_index += 1
        number = branch_number(self._number, index)
        subscription = StompSubscription(key, destination, mode, index, number)
        self._subscriptions[key] = subscription
        self._by_index[index] = subscription
        return subscription

    def _join(
        self,
        subscription: StompSubscription,
        places: list[Place],
        wanted: SubscriptionFilter | None,
        terms: Terms,
        asked: AskedFrame,
        commands: list[Command],
    ) -> None:
        """Join the places of a destination, which are created if they do not exist."""
        for place in places:
            if not place.is_temporary:
                # If it does not exist, joining it fails.
                request = Joined(asked, subscription, must=False)
                shape = self._context.shape(place)
                commands.append(CreateQueue(self._number, request, place.channel, QUEUE, shape))
        commands.append(self._branch(subscription, asked))
        for at, place in enumerate(places, 1):
            last = at == len(places) and not subscription.patterns
            joined = Joined(asked, subscription, last=last)
            commands.append(
                Join(
                    subscription.number,
                    joined,
                    place.channel,
                    filter=wanted,
                    terms=terms,
                    creates=False,
                )
            )

    def _branch(self, subscription: StompSubscription, asked: AskedFrame) -> Command:
        """The command to open the branch of a subscription."""
        subscription.opened = True
        return OpenBranch(self._number, Joined(asked, subscription), subscription.number)

    def _key_of(self, frame: StompFrame) -> str:
        """The key of a subscription: its id or, in version 1.0, its destination.

        :raises FrameError: when it has no id and needs one.
        """
        found = frame.find("id")
        if found is not None:
            return OF_ID + found
        if self._stomp.version != V1_0:
            raise FrameError("the header id is missing")
        return frame.get("destination")

    def _wanted_by(self, frame: StompFrame) -> SubscriptionFilter | None:
        """The filter of a subscription; None for all messages.

        :raises FrameError: when its selector is invalid.
        """
        selector = self._selector_of(frame)
        if _says(frame, "activemq.noLocal"):
            return NoLocal(self._client_id, selector)
        return selector

    def _selector_of(self, frame: StompFrame) -> SelectorFilter | None:
        """The selector of a subscription; None without one.

        :raises FrameError: when it is invalid.
        """
        text = frame.get("selector")
        if not text.strip():
            return None
        try:
            return selector_filter(text, self._context.letters, converts=True)
        except FilterError as error:
            raise FrameError(str(error)) from None

    def _terms_of(self, frame: StompFrame) -> Terms:
        """The terms that a subscription asks for.

        :raises FrameError: for a number that is invalid or out of range.
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
        return context.terms(window, priority, exclusive=_says(frame, _EXCLUSIVE))

    # -- durable subscriptions ------------------------------------------------------------------

    def _durable_channel_of(self, frame: StompFrame) -> str:
        """The channel of the durable subscription that a frame names; empty when it names none.

        :raises FrameError: when the client has no client-id.
        """
        for header in _DURABLE:
            name = frame.get(header)
            if name:
                if not self._chosen_id:
                    raise FrameError("a durable subscription needs the client-id of CONNECT")
                return durable_channel(self._chosen_id, name, self._context.names)
        return ""

    def _durable_of(self, frame: StompFrame, places: list[Place]) -> DurableSubscription | None:
        """The durable subscription that a client asks for; None when it asks for none.

        :raises FrameError: when the durable subscription is not possible.
        """
        channel = self._durable_channel_of(frame)
        if not channel:
            return None
        place = places[0]
        if len(places) > 1 or not place.is_topic or place.is_temporary or place.pattern:
            raise FrameError("a durable subscription must have one topic")
        if _says(frame, "activemq.noLocal"):
            raise FrameError("activemq.noLocal is not served for durable subscriptions")
        self._check_inactive(channel)
        return DurableSubscription(channel, places[0].channel, self._selector_of(frame))

    def _check_inactive(self, channel: str) -> None:
        """Check that this connection does not use a durable subscription yet.  No other client can,
        because the client-id is unique.

        :raises FrameError: when it is in use.
        """
        for each in self._subscriptions.values():
            if each.kept_as == channel:
                raise FrameError("the durable subscription is in use")

    def _looked(self, effect: Reply, looked: Looked) -> Sequence[Command]:
        """Handle the lookup of a durable subscription: create what is missing, and join."""
        asked, subscription = looked.asked, looked.subscription
        if effect.code not in (RESULT_OK, RESULT_NOT_FOUND):
            return self._fail(asked, words_of(effect.code))
        if subscription.index not in self._by_index:
            return self._settle(asked)  # it has ended meanwhile
        context = self._context
        made = Joined(asked, subscription, makes=True)
        commands = begin(
            self._number,
            made,
            looked.wanted,
            effect,
            context.shapes.of_topic,
            context.kept_queue(),
            Joined(asked, subscription, must=False),
        )
        asked.left = waits_for(commands, made) + 1
        commands.append(self._branch(subscription, asked))
        joined = Joined(asked, subscription, last=True)
        channel = looked.wanted.channel
        commands.append(
            Join(subscription.number, joined, channel, terms=looked.terms, creates=False)
        )
        return commands

    # -- answers --------------------------------------------------------------------------------

    def _subscribed(self, effect: Reply, joined: Joined) -> Sequence[Command]:
        """Handle the answer to one of the commands of a SUBSCRIBE."""
        code = effect.code
        if not joined.must:
            return NOTHING
        if code == RESULT_OK or (joined.makes and code == RESULT_DUPLICATE):
            if not (joined.makes or joined.last):
                return NOTHING
            asked = joined.asked
            asked.left -= 1
            return self._settle(asked) if asked.left <= 0 else NOTHING
        text = words_of(code)
        if code == RESULT_NOT_FOUND:
            text = "there is no such destination, and the client may not create it"
        elif code == RESULT_LIMIT_EXCEEDED and joined.last and joined.subscription.kept_as:
            text = "the durable subscription is in use"
        return self._fail(joined.asked, text)

    # -- UNSUBSCRIBE ----------------------------------------------------------------------------

    def _unsubscribe(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        asked = self._asked("UNSUBSCRIBE", frame)
        try:
            channel = self._durable_channel_of(frame)
            if channel:
                self._check_inactive(channel)
                commands.append(RemoveChannel(self._number, asked, channel))
                return
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
        if subscription.opened:
            commands.append(CloseBranch(self._number, asked, subscription.number))
        else:
            commands += self._settle(asked)


def _says(frame: StompFrame, name: str) -> bool:
    """Whether a header is given and is not ``false``."""
    return frame.get(name).lower() not in ("", "false")
