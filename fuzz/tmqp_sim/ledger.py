"""The second set of books: what the broker may do, told from its commands and effects alone.

Theory of operation.  The ledger sees every command that goes into the broker and every effect that
comes out, and keeps a model of its own, without a look at the broker's books: who has joined what,
which message is in whose hands and until when, who asked to be told, what the storage has said.  An
effect that the model does not allow is a violation at once, with the step that made it.

===============  ==================================================================================
promise          is broken by
===============  ==================================================================================
exclusivity      a message sent again while somebody has it and its time is not up; two receivers
                 of a message for one; a second message while the queue waits for an answer
order            a first sending that overtakes an older message of its priority, or a higher one
audience         a delivery to who has not joined, or past who has, or past who is to get all
flags            the first-acquirer flag given twice, or never (F87)
confirm          a producer told twice, or told that all is well before the storage said so
deadline         a timeout before its time, a message sent although it is too old
credit           more in flight than a session may have
===============  ==================================================================================

Runs are told to it message by message (``singles.py``, ``watch.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from tmqp.constants import STATUS_PULL, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import (
    Acknowledge,
    Block,
    CancelMessage,
    ClearMessages,
    CloseBranch,
    Command,
    Disconnect,
    Extend,
    Grant,
    Join,
    Leave,
    Push,
    Release,
    RemoveMessage,
    SetTerms,
    Synced,
    Unblock,
    UpdateChannel,
    connection_of,
)
from tmqp_server.engine.effects import (
    Accept,
    Append,
    CloseSession,
    Confirm,
    Deliver,
    DeliverPulled,
    Effect,
    Lapsed,
    Reply,
)
from tmqp_server.engine.model.message import Message
from tmqp_sim.appointments import Appointments
from tmqp_sim.correspondence import Correspondence
from tmqp_sim.history import Place
from tmqp_sim.kinship import Kinship
from tmqp_sim.lapses import Lapses, SentByLink
from tmqp_sim.lifetimes import Lifetimes
from tmqp_sim.promises import Hand, Promises, check_said, is_with
from tmqp_sim.wishes import Wishes
from tmqp_sim.world import Violation, World

__all__ = ["Ledger"]

#: Rounding of times.
_EPSILON_S: Final = 1e-9
#: Handlers that tell nobody who did not ask; any other may tell every producer once (F77).
_TELL_WHO_ASKED: Final = ("ack-if-asked", "putback-start", "putback-end")


class Ledger:
    """The model of one life of the broker.

    :param sent: what was sent to each session, in its order, over all lives.
    :param pushes: how often a message was pushed up to now, over all lives.
    :param lifetimes: when messages are too old, over all lives.
    :param appointments: what is deferred, cancelled and counted, over all lives.
    """

    def __init__(
        self,
        world: World,
        places: dict[tuple[str, int], Place],
        max_in_flight: int,
        sent: SentByLink,
        pushes: Callable[[str], int],
        lifetimes: Lifetimes,
        appointments: Appointments,
    ) -> None:
        self.pushes = pushes
        self.appointments, self.lifetimes = appointments, lifetimes
        self._held: dict[int, Command] = {}  # may be refused in a later step, by their wires
        self.world, self.places = world, places
        self.max_in_flight = max_in_flight
        self.sent, self.steps = sent, 0
        #: Channel (lower case) to the sessions that have joined it.
        self.members: dict[str, dict[int, None]] = {}
        self.clients: dict[str, int] = {}  # client id to session
        self.names: dict[int, str] = {}
        #: What is in somebody's hands, by queue and message.
        self.hands: dict[tuple[tuple[str, int], str], list[Hand]] = {}
        self.in_hand: dict[tuple[str, int, str, int], list[Hand]] = {}
        self.waiting_for: dict[tuple[str, int], Hand] = {}
        self.last_first: dict[tuple[tuple[str, int], int, str, bool], int] = {}
        #: The places in the order of arrival of messages that were never sent.
        self.unsent: dict[tuple[tuple[str, int], str], list[int]] = {}
        self.arrivals = 0
        self.wishes = Wishes(world, Kinship(world, self.hands, self.members))
        self.disk_failed = False  # something could not be saved in this life
        #: When each message was taken in, by its id; several times if it was pushed again.
        self.accepted: dict[tuple[str, int], dict[str, list[float]]] = {}
        self.asked: dict[tuple[int, str], int] = {}
        self.positives: dict[tuple[int, str], int] = {}
        #: Whose messages wait for an answer of the storage, by ticket; those of a run have one.
        self.tickets: dict[int, list[tuple[int, str]]] = {}
        #: Holders whose time was up when their message was sent again in this step.
        self.overtaken: dict[tuple[str, int], int] = {}
        #: Holders whose time is up and whom the broker has not dealt with yet.
        self.due: dict[tuple[str, int], int] = {}
        #: How often each message of a queue was sent, by its id.
        self.sendings: dict[tuple[tuple[str, int], str], int] = {}
        self._correspondence = Correspondence(world)
        self._promises, self._lapses = Promises(world, max_in_flight), Lapses(world, sent)
        #: Whether a queue has messages on disk only.  Where consumers choose, those are examined
        #: when they are fetched, and others may go before them (seeds 103784, 129643).
        self.has_spilled: Callable[[tuple[str, int]], bool] = lambda _key: False
        self.trusting = False  # the server passes every answer on
        self._passes: list[Hand] = []
        self._performers: dict[type, Callable[[Command], None]] = {
            Push: self._push,
            Acknowledge: self._acknowledge,
            Release: self._release,
            Join: self._join,
            Leave: self._leave,
            Grant: self._grant,
            SetTerms: self._set_terms,
            UpdateChannel: self.wishes.updated,
            Extend: self._extend,
            Disconnect: self._end,
            CloseBranch: self._end,
            Synced: self._synced,
            ClearMessages: self._clear,
            CancelMessage: self._cancel,
            RemoveMessage: self._cancel,
            Block: self._promises.block,
            Unblock: self._promises.block,
        }

    # -- a step ---------------------------------------------------------------------------------

    def before(self, command: Command) -> None:
        """Take note of what is asked."""
        self.steps += 1
        perform = self._performers.get(type(command))
        if perform is not None:
            session = getattr(command, "session", None)
            if session is not None and connection_of(session) not in self.names:
                return
            perform(command)

    def after(self, command: Command | None, effects: list[Effect]) -> None:
        """Judge what came of it.

        :raises Violation: when a promise is broken.
        """
        if not self.trusting:
            self._correspondence.after(command, effects)
        # Who is taken over goes first: what it had may be with others in this step (seed 5591).
        for effect in effects:
            if isinstance(effect, CloseSession):
                self._forget(effect.session)
        for hand, session in self._promises.take_returned():
            self._let_go(hand, session)
        if isinstance(command, Push):
            self.appointments.count(command, effects)
        for effect in effects:
            if isinstance(effect, Deliver):
                self._deliver(effect.sessions, effect.message, effect.channel, effect)
            elif isinstance(effect, DeliverPulled):
                message = effect.message
                self._deliver([effect.session], message, message.channel, effect)
            elif isinstance(effect, Confirm):
                self._confirm(effect)
            elif isinstance(effect, Append):
                producer = effect.message.producer.number
                owner = (producer, effect.message.message_id)
                self.tickets.setdefault(effect.ticket, []).append(owner)
            elif isinstance(effect, Accept):
                self._accept(effect)
            elif isinstance(effect, Lapsed) and (effect.channel, effect.queue_id) in self.places:
                lost = (effect.channel, effect.queue_id, effect.message_id, effect.session)
                self._lapses.told(effect, self.in_hand.get(lost, []))
            elif isinstance(effect, Reply):
                self.appointments.replied(effect)
                asked = self._held.pop(id(effect.request), command)
                if effect.code and asked is not None:
                    self._refused(effect, asked)
        if self._passes:
            self._check_passes()

    # -- sessions -------------------------------------------------------------------------------

    def _accept(self, effect: Accept) -> None:
        older = self.clients.get(effect.client_id)
        if older is not None:
            raise Violation(
                "take-over", f"{effect.client_id} is session {older} and {effect.session} at once"
            )
        self.clients[effect.client_id] = effect.session
        self.names[effect.session] = effect.client_id

    def _end(self, command: Command) -> None:
        assert isinstance(command, (CloseBranch, Disconnect))
        self._forget(command.branch if isinstance(command, CloseBranch) else command.session)

    def _forget(self, session: int) -> None:
        """A connection is over with its branches, or one of these is."""
        name = self.names.pop(session, "")
        if self.clients.get(name) == session:
            del self.clients[name]
        for members in self.members.values():
            for each in [each for each in members if session in (each, connection_of(each))]:
                del members[each]
        self._promises.forget(session, self.places)
        self._lapses.forget(session)

    def _join(self, command: Command) -> None:
        assert isinstance(command, Join)
        channel = command.channel.lower()
        check_said(command.request, command.terms)
        self.members.setdefault(channel, {})[command.session] = None
        self._promises.grant(channel, command.session, command.credit)
        self._promises.accept(channel, command.session, command.terms)
        self.wishes.joined(command)
        self._lapses.joined(command)

    def _set_terms(self, command: Command) -> None:
        assert isinstance(command, SetTerms)
        check_said(command.request, command.terms)
        channel = command.channel.lower()
        if command.session in self.members.get(channel, {}):
            self._promises.accept(channel, command.session, command.terms)
            self.wishes.retuned(channel)

    def _leave(self, command: Command) -> None:
        assert isinstance(command, Leave)
        channel = command.channel.lower()
        self.members.get(channel, {}).pop(command.session, None)
        self._promises.leave(channel, command.session, self.places)

    def _grant(self, command: Command) -> None:
        assert isinstance(command, Grant)
        self._promises.grant(command.channel.lower(), command.session, command.credit)

    def _refused(self, effect: Reply, command: Command) -> None:
        if isinstance(command, Join) and effect.request is command.request:
            self.members.get(command.channel.lower(), {}).pop(command.session, None)
            self._promises.refuse(command.channel.lower(), command.session)
            self._lapses.forget(command.session)
        elif isinstance(command, Push) and effect.request is command.wire:
            key = (command.channel, command.queue_id)
            times = self.accepted.get(key, {}).get(command.message_id)
            if times is not None:
                if arrived := self.unsent[key, command.message_id]:
                    arrived.pop()  # one that waited for room may have had a duplicate (seed 97834)
                times.pop()
                self.lifetimes.refused(key, command.message_id)
                if not times:
                    del self.accepted[key][command.message_id]
            self.wishes.passes(key, command.message_id)

    # -- messages in ----------------------------------------------------------------------------

    def _push(self, command: Command) -> None:
        assert isinstance(command, Push)
        key = (command.channel, command.queue_id)
        if key not in self.places:
            return
        wait_ms = 0 if command.extras is None else command.extras.wait_ms
        if wait_ms:
            self._held[id(command.wire)] = command
        accepted = self.accepted.setdefault(key, {})
        accepted.setdefault(command.message_id, []).append(self.world.now)
        self.lifetimes.took_in(key, command.message_id, wait_ms / 1000)
        self.wishes.pushed(self.places[key], command)
        self.arrivals += 1
        self.unsent.setdefault((key, command.message_id), []).append(self.arrivals)
        if not self.appointments.note_deferred(command):
            self.wishes.comes(self.places[key], command)
        if command.wants_confirm or self.places[key].handler not in _TELL_WHO_ASKED:
            asked = (command.session, command.message_id)
            self.asked[asked] = self.asked.get(asked, 0) + 1

    def _synced(self, command: Command) -> None:
        assert isinstance(command, Synced)
        if not command.ok:
            self.disk_failed = True
        for ticket in range(command.ticket, command.ticket + command.count):
            owners = self.tickets.pop(ticket, None)
            if owners is not None and command.ok:
                for owner in owners:
                    self.positives[owner] = self.positives.get(owner, 0) + 1

    def _confirm(self, effect: Confirm) -> None:
        key = (effect.channel, effect.queue_id)
        place = self.places.get(key)
        if place is None:
            return
        self.appointments.check_confirm(effect)
        asked = (effect.session, effect.message_id)
        left = self.asked.get(asked, 0)
        if left == 0:
            raise Violation("confirm", f"{asked} is told more often than it asked")
        self.asked[asked] = left - 1
        if not effect.positive or not place.saves:
            return
        left = self.positives.get(asked, 0)
        if left == 0:
            raise Violation("confirm", f"{asked} is told that it is safe before it is")
        self.positives[asked] = left - 1

    # -- messages out ---------------------------------------------------------------------------

    def _deliver(
        self,
        sessions: list[int],
        message: Message,
        channel: str,
        effect: Deliver | DeliverPulled,
    ) -> None:
        key = (channel, message.queue_id)
        place = self.places.get(key)
        if place is None:
            return
        hand = self._passes[-1] if self._passes else None
        if hand is None or hand.message is not message:
            self._check_returned(place, key, message)
            hand = self._new_hand(place, key, message)
            self._check_first(place, key, message, effect)
        elif effect.first_acquirer:
            raise Violation("flags", f"{hand.uid} has two first acquirers")
        uid = message.message_id
        members = self.members.get(channel.lower(), {})
        for session in sessions:
            if session not in members:
                text = f"{uid} of {place} goes to session {session}, which has not joined"
                raise Violation("audience", text)
            hand.sessions.append(session)
            self.wishes.check(place, message, channel, session)
            if isinstance(effect, Deliver):  # what a client pulls needs no credit
                self._promises.spend(channel.lower(), session)
                if place.status == STATUS_ROUND_ROBIN:
                    self._promises.check_sole(place, uid, members, session)
            self.sent.setdefault(connection_of(session), []).append(uid)
            if effect.wants_acknowledge:
                bound = isinstance(effect, Deliver)
                self._promises.deliver(channel.lower(), session, hand, place, bound)
                hand.holders.append(session)
                self.in_hand.setdefault((channel, message.queue_id, uid, session), []).append(hand)

    def _new_hand(self, place: Place, key: tuple[str, int], message: Message) -> Hand:
        now = self.world.now
        if place.waits:
            held = self.waiting_for.get(key)
            awaited = held is not None and len(held.holders) == len(held.sessions)
            if held is not None and awaited and now < held.last_due() - _EPSILON_S:
                raise Violation(
                    "exclusivity",
                    f"{message.message_id} of {place} is sent while {held.uid} is unanswered",
                )
        self._promises.check_delay(message, place)
        self._count_sending(place, key, message)
        hand = Hand(key, message, now + place.ack_timeout_s, self.steps)
        self.hands.setdefault((key, hand.uid), []).append(hand)
        if place.waits:
            self.waiting_for[key] = hand
        self._passes.append(hand)
        return hand

    def _count_sending(self, place: Place, key: tuple[str, int], message: Message) -> None:
        """Put-backs have their limit, and dead letters were tried that often (C7)."""
        uid = message.message_id
        count = self.sendings.get((key, uid), 0) + 1
        self.sendings[(key, uid)] = count
        if message.attempts > place.put_back_limit + 1 + self._promises.uncounted.get(message, 0):
            raise Violation(
                "put-back", f"{uid} of {place} is sent {message.attempts} times, over its limit"
            )
        if place.kind != "dead" or count > 1:
            return
        self.world.mark("dead letter delivered")
        for origin in self.places.values():
            if origin.dead_letter == key:
                tries = self.sendings.get((origin.key, uid), 0)
                times = self.accepted.get(origin.key, {}).get(uid, ())
                is_known = 0 < self.pushes(uid) <= len(times)  # not of a life before (seed 757)
                if is_known and 0 < tries <= origin.put_back_limit:
                    text = f"{uid} is a dead letter of {origin} after {tries} sendings"
                    raise Violation("put-back", text)

    def _check_returned(self, place: Place, key: tuple[str, int], message: Message) -> None:
        """A message is sent: is it free?  Of one that was pushed twice there are two."""
        uid = message.message_id
        hands = self.hands.get((key, uid))
        if not hands:
            return
        now = self.world.now
        taken: list[Hand] = []
        for hand in hands:
            if not hand.holders:
                continue
            if now < hand.last_due() - _EPSILON_S:
                taken.append(hand)
            elif hand.message is message:
                self.overtaken[key] = self.overtaken.get(key, 0) + len(hand.holders)
                self._lapses.check_sending(hand)
                self.close(hand)
            else:
                taken.append(hand)
        self.hands[key, uid] = taken
        busy = [hand for hand in taken if now < hand.last_due() - _EPSILON_S]
        if len(busy) >= self.pushes(uid) or any(hand.message is message for hand in busy):
            raise Violation(
                "exclusivity",
                f"{uid} of {place} is sent again while sessions {busy[0].holders} have it"
                f" until {busy[0].last_due():.4f}",
            )

    def _check_first(
        self,
        place: Place,
        key: tuple[str, int],
        message: Message,
        effect: Deliver | DeliverPulled,
    ) -> None:
        """Order and flags of a sending."""
        uid = message.message_id
        self.lifetimes.check_sending(key, uid)
        self.appointments.check_sending(key, uid)
        if effect.wants_acknowledge != place.acks:
            raise Violation("flags", f"{uid} of {place}: acknowledges are not asked as they should")
        if effect.first_acquirer:
            self.wishes.passes(key, uid)
        if not (self._may_stay_back(place) or self.has_spilled(key)):
            self.wishes.check_rank(place, message)
        times = self.accepted.get(key, {}).get(uid)
        if not times:
            return  # it was there before this life, or is a dead letter
        arrived = self.unsent[key, uid]
        turn = 0
        if effect.first_acquirer and arrived:
            turn = arrived.pop(0)
        if len(times) < self.pushes(uid):
            return  # one of them may have been there before this life
        if effect.first_acquirer and not turn:
            raise Violation("flags", f"{uid} of {place}: one first acquirer too many (F87)")
        if not effect.first_acquirer and len(arrived) == len(times):
            raise Violation("flags", f"{uid} of {place} has no first acquirer (F87)")
        if effect.first_acquirer and len(times) == 1 and not self.appointments.waited(key, uid):
            self._check_order(place, key, message, turn)

    def _check_order(self, place: Place, key: tuple[str, int], message: Message, turn: int) -> None:
        """The first sending of what was pushed once: it overtakes nothing."""
        uid = message.message_id
        high = message.high_priority
        if place.status == STATUS_PULL:
            return  # who pulls may want the newest first
        if self._may_stay_back(place):
            return
        kind = self.wishes.kind_of(key, uid)
        if (
            not high
            and (waiting := self.wishes.high_of_kind(place, kind))
            and not place.expiry_s
            and place.kind != "fan"
            and not ((place.kinds or place.groups) and self.has_spilled(key))
        ):
            raise Violation("order", f"{uid} of {place} overtakes {waiting} of high priority")
        order = (key, self.wishes.level_of(place, message), kind, self.wishes.is_patient(key, uid))
        if turn <= self.last_first.get(order, 0):
            raise Violation("order", f"{uid} of {place} comes behind a younger one")
        self.last_first[order] = turn

    def _may_stay_back(self, place: Place) -> bool:
        """Whether what could not be saved was dropped, or stays in memory before the rest."""
        return self.disk_failed and (place.durable or place.overflow)

    def _check_passes(self) -> None:
        """Everybody, or one: as the queue's status says."""
        for hand in self._passes:
            place = self.places[hand.key]
            if len(set(hand.sessions)) != len(hand.sessions):
                raise Violation("exclusivity", f"{hand.uid} goes twice to one of {hand.sessions}")
            if place.exclusive:
                if len(hand.sessions) != 1:
                    raise Violation("exclusivity", f"{hand.uid} of {place} goes to {hand.sessions}")
            elif place.kind != "fan":
                self._promises.check_all(place, hand, self.members.get(hand.key[0].lower(), {}))
        self._passes.clear()

    # -- messages back --------------------------------------------------------------------------

    def _acknowledge(self, command: Command) -> None:
        assert isinstance(command, Acknowledge)
        self._answered(command)

    def _release(self, command: Command) -> None:
        assert isinstance(command, Release)
        hand = self._answered(command)
        if hand is not None:
            self._promises.release(hand.message, command)

    def _answered(self, command: Acknowledge | Release) -> Hand | None:
        """Take what is answered for out of a hand; None if it is in none."""
        key = (command.channel, command.queue_id, command.message_id, command.session)
        hands = self.in_hand.get(key)
        if hands:
            hand = hands.pop(0)
            hand.holders.remove(command.session)
            if not hands:
                del self.in_hand[key]
            return hand
        if (command.channel, command.queue_id) in self.places:
            self.world.mark("acknowledge of nothing in hand")
        return None

    def close(self, hand: Hand) -> None:
        """Nobody has it any more."""
        for session in list(hand.holders):
            self._let_go(hand, session)

    def _let_go(self, hand: Hand, session: int) -> None:
        """A session has it no longer."""
        hand.holders.remove(session)
        key = (*hand.key, hand.uid, session)
        hands = self.in_hand.get(key)
        if hands is not None:
            if hand in hands:
                hands.remove(hand)
            if not hands:
                del self.in_hand[key]

    def _extend(self, command: Command) -> None:
        assert isinstance(command, Extend)
        key = (command.channel, command.queue_id, command.message_id, command.session)
        for hand in self.in_hand.get(key, [])[:1]:
            hand.dues[command.session] = self.world.now + command.timeout_ms / 1000

    def timed_out(self, key: tuple[str, int], count: int, out: Collection[Message]) -> None:
        """The broker says that so many deliveries of a queue timed out in this step.

        :param out: what is in flight behind the step: it may not have come to all whose time is up,
            and an answer may still come before it does.
        :raises Violation: when their time was not up.
        """
        now = self.world.now
        allowed = self.overtaken.pop(key, 0) + self.due.pop(key, 0)
        if count > allowed:
            for hands in self.hands.values():
                for hand in hands:
                    if hand.key != key or not hand.holders:
                        continue
                    there = any(hand.message is message for message in out)
                    for session in list(hand.holders):
                        late = hand.due_of(session) <= now + _EPSILON_S
                        # One whose time is the queue's has it as long as anybody has.
                        stays = there and (not hand.dues or is_with(hand.message, session))
                        if late and not stays:
                            allowed += 1
                            self._let_go(hand, session)
        if count > allowed:
            text = f"{count} deliveries of {key} timed out, {allowed} were due"
            raise Violation("deadline", text)
        if count < allowed:
            self.due[key] = allowed - count

    def all_served(self) -> None:
        """Whatever was due has been dealt with."""
        self.due.clear()

    def _cancel(self, command: Command) -> None:
        """A message is removed on purpose."""
        assert isinstance(command, (CancelMessage, RemoveMessage))
        self.wishes.removed((command.channel, command.queue_id), command.message_id)
        self.appointments.cancel(command)

    def _clear(self, command: Command) -> None:
        """What waits in a queue is removed on purpose."""
        assert isinstance(command, ClearMessages)
        self.wishes.cleared((command.channel, command.queue_id))
