"""The send pass: sends one message once to all consumers that get it this time.

Theory of operation (specification, "Delivery Workflow").  Begin send decides once per message.
Then, for each consumer: can it receive? If not, the delivery fails; otherwise the message is sent
and, if the queue requests acknowledgements, registered as in flight.  End send closes the pass, the
decisions about all consumers are combined and carried out, and the message is in flight, put back,
settled or dropped.

Most queues have handlers that decide none of this, and an audience in which every consumer can take
the message.  Then the pass is one or two effects with ready-made lists of recipients
(``_send_to_all``), or, if each message goes to one consumer, one effect for that one, and only that
one is checked (``_send_to_one``).  Otherwise the pass takes the long way (``_send_deciding``).  A
pulled message has one consumer, the one that pulls; it takes the long way with that consumer alone
(``send_pulled``).

A message without an id (F41) cannot be acknowledged: no consumer is asked for it, and the message
is settled when it was sent.  Queues that have had one take the long way.

The first receiver of a message that was never sent gets the first-acquirer flag (F87); deliveries
come before the confirm that a decision makes (observed: delivery, then acknowledgement).
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import PUT_BACK_NO
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.effects import Deliver, DeliverPulled
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    ALLOW,
    HOOK_BEGIN_SEND,
    HOOK_CAN_RECEIVE,
    HOOK_CONSUMER_FAILED,
    HOOK_CONSUMER_RECEIVED,
    HOOK_END_SEND,
    Decision,
    combine,
)
from tmqp_server.engine.model.message import Message, verdict
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience, Pulling, Session, Subscription

__all__ = ["Sender"]

#: Filters that are tried for one unit of work: 2 ** 3.
_FILTERS_SHIFT: Final = 3
#: Bytes of a pulled message that count as one unit of work: it is encoded for its request alone.
_PULLED_BYTES_PER_UNIT: Final = 16_384


class Sender:
    """Carries out send passes."""

    __slots__ = ("_core", "_flights", "_outcomes")

    def __init__(self, core: Core, flights: Flights, outcomes: Outcomes) -> None:
        self._core = core
        self._flights = flights
        self._outcomes = outcomes

    def send(self, queue: Queue, message: Message, now: float) -> None:
        """Send *message*, which is in no list any more; the budget is charged."""
        self._core.budget -= 1
        audience = queue.audience
        # If the queue does not wait for consumers, all that hear get it, however much they have in
        # flight (Flights.give).
        if queue.plain and audience.special == 0 and (audience.stalled == 0 or queue.skips):
            self._send_to_all(queue, message, audience, now)
        elif queue.single and audience.filters == 0:
            self._send_to_one(queue, message, audience, now)
        elif queue.chooses():
            # The pump, which the caller starts, finds the consumer.
            self._outcomes.wait_last(queue, message)
            if message.rare is not None:
                self._core.arm(queue)
        elif queue.plain and audience.metered == 0 and (audience.stalled == 0 or queue.skips):
            self._send_to_those_who_want(queue, message, audience, now)
        else:
            self._send_deciding(queue, message, now)

    def send_chosen(self, queue: Queue, message: Message, takers: int, now: float) -> None:
        """Send *message*, which is in no list any more, to a consumer at one of these places of the
        ring."""
        self._core.budget -= 1
        if not queue.direct:
            self._send_deciding(queue, message, now, takers if queue.keyed else -1)
            return
        audience = queue.audience
        in_turn = queue.discipline.exclusive
        subscription = audience.next_of(takers, queue.turn if in_turn else -1)
        if in_turn:
            queue.turn = subscription.place
        self._give_one(queue, message, subscription, now)

    def _send_deciding(self, queue: Queue, message: Message, now: float, places: int = -1) -> None:
        """The long way: the handler is called at every step, and every consumer at these *places*
        of the ring is examined; -1 means all."""
        decision = self.begin(queue, message, now)
        if decision is not None:
            sent, decision = self.send_to_some(queue, message, decision, now, places)
            self.conclude(queue, message, decision, sent, now)

    def begin(self, queue: Queue, message: Message, now: float) -> Decision | None:
        """Begin the pass of a message; return None if the handler ends it, because the message is
        not to be sent."""
        if not queue.hooks & HOOK_BEGIN_SEND:
            return ALLOW
        decision = self._outcomes.ask(HOOK_BEGIN_SEND, queue, message, None, None)
        self._outcomes.apply(queue, message, decision)
        if decision.allow:
            return decision
        self._close_unsent(queue, message, decision, now)
        return None

    def conclude(
        self, queue: Queue, message: Message, decision: Decision, sent: bool, now: float
    ) -> None:
        """End the pass of a message; *sent* says whether any consumer got it."""
        if queue.hooks & HOOK_END_SEND:
            closing = self._outcomes.ask(HOOK_END_SEND, queue, message, None, None)
            decision = combine(decision, closing)
        if decision is not ALLOW:
            self._outcomes.apply(queue, message, decision)
        if not sent:
            self._close_unsent(queue, message, decision, now)
        else:
            self._close_sent(queue, message, decision, now)

    def _send_to_all(self, queue: Queue, message: Message, audience: Audience, now: float) -> None:
        """The short way: the handler decides nothing, and every consumer takes the message.

        Nearly all messages go this way, so one function does everything from the delivery to the
        accounts.  The result is the same as that of the long way with a handler that allows all; a
        test compares them.
        """
        if audience.stale:
            audience.refresh()
        if audience.deaf:
            self._flights.skip(queue, audience.deaf)
        everyone = audience.everyone
        count = len(everyone)
        if count == 0:
            self._flights.dequeue(queue)
            self._outcomes.drop(queue, message)
            return
        options = queue.options
        wants = options.request_acknowledge
        hides = options.hide_client_names
        name = queue.channel_name
        out = self._core.out
        if message.attempts:
            attempt = message.attempts + 1
            out.append(Deliver(everyone, message, name, False, wants, True, hides, attempt))
        else:
            out.append(Deliver(audience.first, message, name, True, wants, False, hides))
            if count > 1:
                out.append(Deliver(audience.rest, message, name, False, wants, False, hides))
        audience.fanouts += 1
        if not self._flights.sent_to_all(queue, message, audience, wants, now):
            self._outcomes.finish(queue, message)

    def _send_to_those_who_want(
        self, queue: Queue, message: Message, audience: Audience, now: float
    ) -> None:
        """The short way with filters: the handler decides nothing, and the filters determine who
        gets the message.

        The result is the same as that of the long way with a handler that allows all; a test
        compares them.
        """
        selection = audience.selection
        assert selection is not None, "there are filters"
        failures = selection.failures
        mask = selection.mask_of(message)
        self._core.budget -= len(selection.slots) >> _FILTERS_SHIFT
        if selection.failures != failures:
            self._outcomes.count_error(queue)
        chosen = audience.chosen_by(mask)
        if chosen.missed:
            self._flights.skip(queue, chosen.missed)
        if not chosen.numbers:
            self._flights.dequeue(queue)
            self._outcomes.drop(queue, message)
            return
        options = queue.options
        wants = options.request_acknowledge
        hides = options.hide_client_names
        name = queue.channel_name
        out = self._core.out
        if message.attempts:
            attempt = message.attempts + 1
            out.append(Deliver(chosen.numbers, message, name, False, wants, True, hides, attempt))
        else:
            out.append(Deliver(chosen.first, message, name, True, wants, False, hides))
            if chosen.rest:
                out.append(Deliver(chosen.rest, message, name, False, wants, False, hides))
        for client in chosen.clients.values():
            client.delivered += 1
        self._flights.sent(queue, message, len(chosen.numbers), now)
        if wants:
            if chosen.rest:
                self._flights.give_all(queue, message, chosen.clients)
            else:
                self._flights.give(queue, message, chosen.clients[chosen.numbers[0]])
        self._close_sent(queue, message, ALLOW, now)

    def _send_to_one(self, queue: Queue, message: Message, audience: Audience, now: float) -> None:
        """The short way to the one consumer whose turn it is: the handler decides nothing.

        The result is the same as that of the long way with a handler that allows all; a test
        compares them.
        """
        in_turn = queue.discipline.exclusive
        subscription = audience.next_ready(queue.turn if in_turn else -1)
        if subscription is None:
            self._send_deciding(queue, message, now)
            return
        if in_turn:
            queue.turn = subscription.place
        else:
            self._flights.skip(queue, subscription.place)
        self._give_one(queue, message, subscription, now)

    def _give_one(
        self, queue: Queue, message: Message, subscription: Subscription, now: float
    ) -> None:
        """Send it to one consumer, and update the accounts."""
        session = subscription.session
        self._spend(subscription)
        session.delivered += 1
        options = queue.options
        wants = options.request_acknowledge
        first = message.attempts == 0
        self._core.out.append(
            Deliver(
                subscription.alone,
                message,
                queue.channel_name,
                first,
                wants,
                not first,
                options.hide_client_names,
                message.attempts + 1,
            )
        )
        flights = self._flights
        flights.sent(queue, message, 1, now)
        if wants:
            flights.give(queue, message, session)
            flights.take_off(queue, message, now)
            flights.dequeue(queue)
        else:
            flights.dequeue(queue)
            self._outcomes.finish(queue, message)

    def send_to_some(
        self,
        queue: Queue,
        message: Message,
        decision: Decision,
        now: float,
        places: int,
    ) -> tuple[bool, Decision]:
        """Send it to the consumers that can get it; return whether any got it, and all decisions
        combined."""
        outcomes = self._outcomes
        hooks = queue.hooks
        chosen: dict[int, Client] = {}
        if places >= 0 and queue.feeds is not None:  # one place, whose turn it is
            candidates = [queue.audience.ring[places.bit_length() - 1]]
        else:
            candidates = self._candidates(queue, queue.audience)
        for subscription in candidates:
            session = subscription.session
            if places >= 0 and not places >> subscription.place & 1:
                continue
            if not self.passes(queue, subscription, message):
                continue
            if hooks & HOOK_CAN_RECEIVE:
                answer = outcomes.ask(HOOK_CAN_RECEIVE, queue, message, session, None)
                decision = combine(decision, answer)
                if not answer.allow:
                    continue
            # Such a queue does not wait for consumers with too much in flight, see Flights.give.
            able = not subscription.stalled or (queue.skips and subscription.can_take())
            if not able:
                self._flights.skip(queue, 1)
                if hooks & HOOK_CONSUMER_FAILED:
                    answer = outcomes.ask(HOOK_CONSUMER_FAILED, queue, message, session, None)
                    decision = combine(decision, answer)
                continue
            self._spend(subscription)
            session.delivered += 1
            chosen[session.number] = session
            if queue.exclusive:
                if queue.audience.filters and queue.discipline.exclusive:
                    queue.turn = subscription.place
                break
        if not chosen:
            return False, decision
        self._emit(queue, message, chosen, now)
        if hooks & HOOK_CONSUMER_RECEIVED:
            for client in chosen.values():
                answer = outcomes.ask(HOOK_CONSUMER_RECEIVED, queue, message, client, None)
                decision = combine(decision, answer)
        return True, decision

    def _candidates(self, queue: Queue, audience: Audience) -> list[Subscription]:
        """The subscriptions to examine, in order: join order, or by turns for round robin.

        The turn is a position, which is not adjusted when a client leaves; after the last position
        comes the first (F90).  An exclusive consumer is the only one.
        """
        sole = audience.sole_taker() if queue.exclusive else None
        if sole is not None:
            return self._alone(queue, sole)
        everybody = list(audience.subscriptions.values())
        if queue.exclusive and audience.has_tiers():
            return self._by_priority(queue, everybody)
        if not queue.discipline.exclusive or not everybody:
            return everybody
        count = len(everybody)
        start = queue.turn + 1 if queue.turn + 1 < count else 0
        for step in range(count):
            position = (start + step) % count
            if not everybody[position].stalled:
                queue.turn = position
                return everybody[position:] + everybody[:position]
        return []

    def _alone(self, queue: Queue, sole: Subscription) -> list[Subscription]:
        """The same if one consumer gets all messages."""
        if queue.discipline.exclusive:
            if sole.stalled:
                return []
            queue.turn = sole.place
        return [sole]

    def _by_priority(self, queue: Queue, everybody: list[Subscription]) -> list[Subscription]:
        """The same with priorities: the highest first, and the order of turns within one."""
        if queue.discipline.exclusive:
            start = queue.turn + 1 if queue.turn + 1 < len(everybody) else 0
            everybody = everybody[start:] + everybody[:start]
        found: list[Subscription] = []
        priorities = {subscription.priority: None for subscription in everybody}
        for priority in sorted(priorities, reverse=True):
            found += [each for each in everybody if each.priority == priority]
        if not queue.discipline.exclusive:
            return found
        for place, subscription in enumerate(found):
            if not subscription.stalled:
                queue.turn = subscription.place
                return found[place:]
        return []

    def passes(self, queue: Queue, subscription: Subscription, message: Message) -> bool:
        """Whether the filter of a subscription, if it has one, accepts a message."""
        found = verdict(subscription.filter, message)
        if found is None:
            self._outcomes.count_error(queue)
        return found is True

    def _emit(self, queue: Queue, message: Message, chosen: dict[int, Client], now: float) -> None:
        """Emit the deliveries to the chosen consumers, and record who has the message."""
        options = queue.options
        wants = options.request_acknowledge and message.message_id != ""
        hides = options.hide_client_names
        name = queue.channel_name
        out = self._core.out
        numbers = list(chosen)
        if message.attempts:
            attempt = message.attempts + 1
            out.append(Deliver(numbers, message, name, False, wants, True, hides, attempt))
        else:
            out.append(Deliver(numbers[:1], message, name, True, wants, False, hides))
            if len(numbers) > 1:
                rest = numbers[1:]
                out.append(Deliver(rest, message, name, False, wants, False, hides))
        self._flights.sent(queue, message, len(numbers), now)
        if wants:
            if len(numbers) == 1:
                self._flights.give(queue, message, chosen[numbers[0]])
            else:
                self._flights.give_all(queue, message, chosen)

    def send_pulled(self, queue: Queue, message: Message, pulling: Pulling, now: float) -> bool:
        """Send *message*, which is in no list any more, to the consumer that pulls.

        Return False if the handler does not allow this consumer and does not put the message back:
        then the caller must put it back, so that it is not lost for others (F109).
        """
        outcomes = self._outcomes
        hooks = queue.hooks
        session = pulling.session
        self._core.budget -= 1 + message.size // _PULLED_BYTES_PER_UNIT
        decision = ALLOW
        if hooks & HOOK_BEGIN_SEND:
            decision = outcomes.ask(HOOK_BEGIN_SEND, queue, message, None, None)
            outcomes.apply(queue, message, decision)
            if not decision.allow:
                self._close_unsent(queue, message, decision, now)
                return True
        if hooks & HOOK_CAN_RECEIVE:
            answer = outcomes.ask(HOOK_CAN_RECEIVE, queue, message, session, None)
            if not answer.allow:
                outcomes.apply(queue, message, answer)
                if answer.put_back == PUT_BACK_NO:
                    return False
                outcomes.put_back(queue, message, answer.put_back)
                return True
            decision = combine(decision, answer)
        self._emit_pulled(queue, message, pulling, now)
        decision = self.decide_sent(queue, message, session, decision)
        self._close_sent(queue, message, decision, now)
        return True

    def decide_sent(
        self, queue: Queue, message: Message, session: Session, decision: Decision
    ) -> Decision:
        """Ask the handler about a message that was sent to the consumer that requested it.

        Carry out its decisions, combined with the earlier *decision*, and return them.
        """
        outcomes = self._outcomes
        hooks = queue.hooks
        if hooks & HOOK_CONSUMER_RECEIVED:
            answer = outcomes.ask(HOOK_CONSUMER_RECEIVED, queue, message, session, None)
            decision = combine(decision, answer)
        if hooks & HOOK_END_SEND:
            closing = outcomes.ask(HOOK_END_SEND, queue, message, None, None)
            decision = combine(decision, closing)
        if decision is not ALLOW:
            outcomes.apply(queue, message, decision)
        return decision

    def _emit_pulled(self, queue: Queue, message: Message, pulling: Pulling, now: float) -> None:
        """Emit the delivery to the consumer that pulls, and record that it has the message."""
        options = queue.options
        wants = options.request_acknowledge and message.message_id != ""
        session = pulling.session
        pulling.index += 1
        self._core.out.append(
            DeliverPulled(
                session.number,
                pulling.request,
                message,
                pulling.index,
                pulling.count,
                message.attempts == 0,
                wants,
                options.hide_client_names,
                queue.high_in_all() if pulling.info else -1,
                queue.regular_in_all() if pulling.info else -1,
                queue.channel_name,
                message.attempts + 1,
            )
        )
        session.delivered += 1
        if message.attempts == 0 and message.sent_at > 0.0:
            self._core.tally.waited(message, now - message.sent_at, 1, now)
        self._flights.sent(queue, message, 1, now)
        if wants:
            self._flights.give(queue, message, session)

    # --- Consumers -------------------------------------------------------------------------------

    def block(self, session: Session, blocked: bool) -> None:
        """Record whether a session's outbound buffer is full."""
        if session.blocked != blocked:
            session.blocked = blocked
            session.answer_bytes = 0
            self._core.recount(session)

    def _spend(self, subscription: Subscription) -> None:
        """Take one delivery from the credit."""
        if subscription.credit > 0:
            subscription.credit -= 1
            if subscription.credit == 0:
                subscription.audience.recount(subscription)

    # --- Closing the pass ------------------------------------------------------------------------

    def _close_sent(self, queue: Queue, message: Message, decision: Decision, now: float) -> None:
        """Close a pass in which a consumer got the message: in flight, put back, or settled."""
        outcomes = self._outcomes
        back = decision.put_back if queue.discipline.stores else PUT_BACK_NO
        if message.holder is not None or message.holders is not None:
            outcomes.mark_put_back(message, back)
            self._flights.take_off(queue, message, now)
            if back == PUT_BACK_NO:
                outcomes.dequeued(queue, message)
        elif back != PUT_BACK_NO:
            outcomes.put_back(queue, message, back)
        else:
            outcomes.dequeued(queue, message)
            outcomes.finish(queue, message)

    def _close_unsent(self, queue: Queue, message: Message, decision: Decision, now: float) -> None:
        """Close a pass in which no consumer got the message: it is put back if that was decided,
        otherwise dropped (F89)."""
        outcomes = self._outcomes
        if decision.put_back != PUT_BACK_NO and queue.discipline.stores:
            outcomes.put_back(queue, message, decision.put_back)
            return
        outcomes.dequeued(queue, message)
        outcomes.drop(queue, message)
