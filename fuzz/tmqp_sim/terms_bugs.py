"""The bugs that are planted where consumers give messages back; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp.extensions import HEADER_CREDIT, LAPSE_TIMED_OUT
from tmqp.frames import Frame
from tmqp_server.doors.native import terms
from tmqp_server.engine.commands import Command, Grant, SetTerms, Terms
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.message import MARK_ANSWERED, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience, Session, Subscription
from tmqp_server.engine.model.terms import AcceptedTerms
from tmqp_server.engine.model.times import AT_ONCE
from tmqp_server.engine.operations.administration import Administration

__all__ = ["TERMS_BUGS"]

_MUCH: Final = 1_000


def _taken_for_an_answer(original: Any) -> Any:
    def mark_released(self: Outcomes, message: Message, *rest: Any) -> None:
        message.marks |= MARK_ANSWERED

    return mark_released


def _no_delay(original: Any) -> Any:
    def mark_released(
        self: Outcomes, message: Message, put_back: int, due_at: float, counted: bool
    ) -> None:
        original(self, message, put_back, AT_ONCE, counted)

    return mark_released


def _never_full(original: Any) -> Any:
    def is_full(self: AcceptedTerms) -> bool:
        return False

    return is_full


def _stays_full(original: Any) -> Any:
    def drop(self: Subscription, message: Message) -> bool:
        if self.holds is not None:
            self.holds.pop(message, None)
        return False

    return drop


def _keeps_it(original: Any) -> Any:
    def take_back(self: Workflow, subscription: Subscription, now: float) -> None:
        return

    return take_back


def _the_queues_time(original: Any) -> Any:
    def hold(self: Subscription, queue: Any, message: Message) -> None:
        self.ack_timeout_s, own = 0.0, self.ack_timeout_s
        original(self, queue, message)
        self.ack_timeout_s = own

    return hold


def _not_extended(original: Any) -> Any:
    def extend(self: Workflow, *_: Any) -> int:
        return 0

    return extend


def _not_alone(original: Any) -> Any:
    def form_ring(self: Audience) -> None:
        original(self)
        self.sole = None
        for subscription in self.ring:
            subscription.bit = 1 << subscription.place
        self.ready = sum(each.bit for each in self.ring if not each.stalled)

    return form_ring


def _all_of_them_take(original: Any) -> Any:
    def let_one_take(self: Audience, single: bool) -> None:
        original(self, False)

    return let_one_take


def _any_of_the_exclusive(original: Any) -> Any:
    def accept(self: Subscription, terms: Any) -> None:
        original(self, terms)
        if self.exclusive:
            self.priority = len(self.audience.subscriptions)

    return accept


def _tells_nobody(original: Any) -> Any:
    def take_away(self: Flights, queue: Any, message: Message, client: Any, reason: str) -> None:
        self._take_from(queue, message, client)

    return take_away


def _tells_who_answers(original: Any) -> Any:
    def release(self: Flights, queue: Any, message: Message, client: Any) -> None:
        self._take_away(queue, message, client, LAPSE_TIMED_OUT)
        queue.counters.released += 1

    return release


def _keeps_the_old_ones(original: Any) -> Any:
    def set_terms(self: Administration, command: Command, session: Session) -> None:
        assert isinstance(command, SetTerms)
        command.terms.window = None
        original(self, command, session)

    return set_terms


def _grants_more(original: Any) -> Any:
    def grant(self: Administration, command: Command, session: Session) -> None:
        assert isinstance(command, Grant)
        found = self._subscription(session, command.channel)
        if found is not None and found.credit > 0 and command.credit > 0:
            command.credit += found.credit
        original(self, command, session)

    return grant


def _reads_any_credit(original: Any) -> Any:
    def number_or_none(frame: Frame, name: str) -> int | None:
        found: int | None = original(frame, name)
        return _MUCH if name == HEADER_CREDIT and found is not None else found

    return number_or_none


def _reads_no_return(original: Any) -> Any:
    def terms_of(frame: Frame) -> Terms | None:
        found: Terms | None = original(frame)
        if found is not None and found.window is not None:
            found.returns = None
        return found

    return terms_of


def _skips_one_more(original: Any) -> Any:
    def emit(
        self: Sender, queue: Queue, message: Message, chosen: dict[int, Client], now: float
    ) -> None:
        if queue.skips and queue.discipline.stores and len(chosen) > 1:
            chosen.popitem()
        original(self, queue, message, chosen, now)

    return emit


#: What makes each of them: name, text, owner, attribute, and the change.
TERMS_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "given-back-is-done", "a message that is given back is settled",
        Outcomes, "mark_released", _taken_for_an_answer,
    ),
    (
        "given-back-at-once", "the delay of a message that is given back is ignored",
        Outcomes, "mark_released", _no_delay,
    ),
    (
        "window-ignored", "a consumer is sent more than it wants to have unanswered",
        AcceptedTerms, "is_full", _never_full,
    ),
    (
        "window-stays-full", "an answer does not make room in a consumer's window",
        Subscription, "drop", _stays_full,
    ),
    (
        "leaver-keeps-all", "what a leaving consumer has stays with it, whatever it wanted",
        Workflow, "take_back", _keeps_it,
    ),
    (
        "own-time-ignored", "a consumer's own timeout is the queue's",
        Subscription, "hold", _the_queues_time,
    ),
    (
        "no-more-time", "a consumer that asks for more time gets none",
        Workflow, "extend", _not_extended,
    ),
    (
        "exclusive-shares", "an exclusive consumer takes turns with the others",
        Audience, "_form_ring", _not_alone,
    ),
    (
        "single-shares", "the consumers of a channel that lets one take everything take turns",
        Audience, "let_one_take", _all_of_them_take,
    ),
    (
        "latest-exclusive", "the last exclusive consumer gets all, whoever came first",
        Subscription, "accept", _any_of_the_exclusive,
    ),
    (
        "skips-one-more", "where slow consumers miss messages, a quick one misses some, too",
        Sender, "_emit", _skips_one_more,
    ),
    (
        "lapses-in-silence", "nobody is told that a delivery is its own no more",
        Flights, "_take_away", _tells_nobody,
    ),
    (
        "lapses-what-it-gives-back", "who gives a message back is told that it has timed out",
        Flights, "release", _tells_who_answers,
    ),
    (
        "terms-set-in-words", "a consumer that wants another window keeps the one it had",
        Administration, "set_terms", _keeps_the_old_ones,
    ),
    (
        "grant-adds", "a credit is added to the one that is left",
        Administration, "grant", _grants_more,
    ),
    (
        "grant-misread", "whatever credit a consumer grants is read as a large one",
        terms, "_number_or_none", _reads_any_credit,
    ),
    (
        "return-unread", "who says a window as well is not heard about what goes back",
        terms, "_terms_of", _reads_no_return,
    ),
)  # fmt: skip
