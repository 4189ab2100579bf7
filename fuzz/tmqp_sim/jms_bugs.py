"""The bugs that are planted in the doors of STOMP and OpenWire; see ``mutants.py``."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from tmqp_server.doors.jms.durable import DurableSubscription
from tmqp_server.doors.jms.rows import RowMaker
from tmqp_server.doors.jms.shapes import JmsShapes
from tmqp_server.doors.openwire.acknowledging import AcknowledgingSession
from tmqp_server.doors.openwire.consuming import ConsumerSession
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.sending import ProducerSession
from tmqp_server.doors.openwire.subscribing import SubscriberSession
from tmqp_server.doors.stomp.consuming import DeliveringSession
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.sending import SendingSession
from tmqp_server.doors.stomp.wildcards import WildcardSession
from tmqp_server.engine.commands import Batch, Command, Push, PushExtras
from tmqp_server.engine.delivery.awaited_copies import tell_held
from tmqp_server.engine.delivery.batch_checks import BatchChecks
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.message import MARK_COPY, MARK_DONE_CONFIRMS, Message

__all__ = ["JMS_BUGS"]


def _pushes_only(original: Any) -> Any:
    def parts_of(self: Any, name: str, transaction: Any) -> list[Command]:
        self._staged.pop(name, None)
        return [each for each in transaction.commands if isinstance(each, Push)]

    return parts_of


def _sent_at_once(original: Any) -> Any:
    def add(
        self: SendingSession, transaction: Any, command: Command, size: int, asked: Any,
        commands: list[Command],
    ) -> bool:  # fmt: skip
        if isinstance(command, Push):
            commands.append(command)
            return True
        found: bool = original(self, transaction, command, size, asked, commands)
        return found

    return add


def _never_refused(original: Any) -> Any:
    def confirmed(self: Any, effect: Any, *rest: Any) -> Any:
        effect.positive = True
        return original(self, effect, *rest)

    return confirmed


def _rolled_back_and_done(original: Any) -> Any:
    def rolled_back(self: Any, transaction: Any, commands: list[Any]) -> None:
        pushes: list[Command] = [each for each in transaction.commands if isinstance(each, Push)]
        if pushes:
            commands.append(Batch(self._number, None, pushes))
        original(self, transaction, commands)

    return rolled_back


def _in_no_transaction(original: Any) -> Any:
    def transaction_of(self: Any, wanted: Any) -> Any:
        return None

    return transaction_of


def _but_the_last(original: Any) -> Any:
    def parts_of(self: Any, name: str, transaction: Any) -> list[Command]:
        found: list[Command] = original(self, name, transaction)
        return found[:-1] if len(found) > 1 else found

    return parts_of


def _row_without_the_last(original: Any) -> Any:
    def run(self: RowMaker, first: Push, row: list[Push]) -> Any:
        return original(self, first, row[:-1])

    return run


def _says_it_twice(original: Any) -> Any:
    def deliver_own(self: Any, *rest: Any) -> None:
        original(self, *rest)
        original(self, *rest)

    return deliver_own


def _the_last_alone(original: Any) -> Any:
    def meant(self: DeliveringSession, frame: Any) -> Any:
        subscription, numbers = original(self, frame)
        return subscription, numbers[-1:]

    return meant


def _awaits_no_copies(original: Any) -> Any:
    def extras(self: JmsShapes, *rest: Any) -> PushExtras:
        said: PushExtras = original(self, *rest)
        return PushExtras(
            said.changes, said.expires_in_ms, said.delay_ms,
            channel_changes=said.channel_changes, wait_ms=said.wait_ms,
        )  # fmt: skip

    return extras


def _done_confirms_anyway(original: Any) -> Any:
    def extras(self: JmsShapes, is_topic: bool, *rest: Any) -> PushExtras:
        said: PushExtras = original(self, is_topic, *rest)
        said.done_confirms = not is_topic
        return said

    return extras


def _confirmed_when_sent(original: Any) -> Any:
    def take_off(self: Any, queue: Any, message: Message, now: float) -> None:
        original(self, queue, message, now)
        if message.marks & MARK_DONE_CONFIRMS and message.rarely().held_confirm is not None:
            tell_held(self._core, message)

    return take_off


def _one_copy_confirms_all(original: Any) -> Any:
    def close(self: Any, queue: Any, message: Message, now: float) -> None:
        if message.marks & MARK_COPY and message.rarely().held_confirm is not None:
            tell_held(self._core, message)
        original(self, queue, message, now)

    return close


def _always_another(original: Any) -> Any:
    numbers = count()
    return property(lambda self: f"{original.fget(self)}-{next(numbers)}")


def _copies_later(original: Any) -> Any:
    def check_copies(self: BatchChecks, *rest: Any) -> int:
        return 0

    return check_copies


def _commit_without_the_last(original: Any) -> Any:
    def commit(self: Any, number: int, asked: Any, commands: list[Any]) -> None:
        original(self, number, asked, commands)
        last = commands[-1] if commands else None
        if isinstance(last, Batch) and len(last.commands) > 1:
            last.commands.pop()

    return commit


def _answers_are_not_staged(original: Any) -> Any:
    def add(self: Any, transaction: Any, command: Command, size: int) -> None:
        if isinstance(command, Push):
            original(self, transaction, command, size)

    return add


def _range_of_one(original: Any) -> Any:
    def acknowledged(self: AcknowledgingSession, consumer: Any, numbers: list[int]) -> Any:
        return original(self, consumer, numbers[-1:])

    return acknowledged


def _shares_what_is_exclusive(original: Any) -> Any:
    def terms(self: Any, window: int, priority: Any, *, exclusive: bool = False) -> Any:
        return original(self, window, priority)

    return terms


def _joins_nothing_new(original: Any) -> Any:
    def deliver(self: Any, data: bytes) -> None:
        """Whatever is new is not what anybody wants."""

    return deliver


def _written_but_not_done(original: Any) -> Any:
    def written(self: Any, now: float) -> Any:
        self._unwritten = {}
        return original(self, now)

    return written


def _answers_before_the_disk(original: Any) -> Any:
    def on_looked(self: Any, effect: Any, looked: Any) -> Any:
        found = original(self, effect, looked)
        looked.asked.left = 1
        return found

    return on_looked


def _letter_but_not_settled(original: Any) -> Any:
    def give_up(self: Any, consumer: Any, numbers: Any, kind: int, cause: Any, out: Any) -> None:
        before = len(out)
        original(self, consumer, numbers, kind, cause, out)
        for each in out[before:]:
            if isinstance(each, Batch):
                each.commands.pop()

    return give_up


#: What a mutant is made of.
JMS_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "stomp-commits-without-answers", "COMMIT does what a transaction sends, and no more",
        DeliveringSession, "_parts_of", _pushes_only,
    ),
    (
        "stomp-sent-at-once", "what a transaction sends is sent at once",
        SendingSession, "_add", _sent_at_once,
    ),
    (
        "stomp-never-refused", "a SEND that cannot be kept gets its receipt",
        SendingSession, "_confirmed", _never_refused,
    ),
    (
        "stomp-commits-but-the-last", "COMMIT leaves the last command out",
        DeliveringSession, "_parts_of", _but_the_last,
    ),
    (
        "stomp-last-forgotten", "the last of several messages in a row is not taken in",
        RowMaker, "_run", _row_without_the_last,
    ),
    (
        "stomp-says-it-twice", "a subscription gets each message twice",
        DeliveringSession, "deliver_own", _says_it_twice,
    ),
    (
        "stomp-the-last-alone", "a cumulative ACK is for one message",
        DeliveringSession, "_meant", _the_last_alone,
    ),
    (
        "stomp-shares-exclusive", "an exclusive subscription is like any other",
        StompContext, "terms", _shares_what_is_exclusive,
    ),
    (
        "openwire-shares-exclusive", "an exclusive consumer is like any other",
        OpenwireContext, "terms", _shares_what_is_exclusive,
    ),
    (
        "stomp-joins-nothing-new", "a name with wildcards is for what is there already",
        WildcardSession, "deliver", _joins_nothing_new,
    ),
    (
        "openwire-joins-nothing-new", "a name with wildcards is for what is there already",
        SubscriberSession, "deliver", _joins_nothing_new,
    ),
    (
        "stomp-auto-never-done", "who need not acknowledge never does",
        DeliveringSession, "written", _written_but_not_done,
    ),
    (
        "openwire-subscribed-early", "a durable subscription is there before it is on the disk",
        SubscriberSession, "_looked", _answers_before_the_disk,
    ),
    (
        "jms-topic-confirmed-early", "a topic's message is confirmed before its copies are safe",
        JmsShapes, "extras", _awaits_no_copies,
    ),
    (
        "jms-confirmed-when-sent", "a message is confirmed when it is sent, before it is done",
        Flights, "take_off", _confirmed_when_sent,
    ),
    (
        "jms-confirmed-by-one", "one who has done with a copy lets the message be confirmed",
        Workflow, "_close", _one_copy_confirms_all,
    ),
    (
        "jms-done-confirms-anyway", "a consumer's answer confirms where only the disk may",
        JmsShapes, "extras", _done_confirms_anyway,
    ),
    (
        "jms-subscription-begins-anew", "a durable subscription begins anew when its client comes",
        DurableSubscription, "tag", _always_another,
    ),
    (
        "jms-copies-later", "a transaction is safe before its copies for durable subscriptions",
        BatchChecks, "_check_copies", _copies_later,
    ),
    (
        "openwire-rollback-commits", "a transaction that is rolled back is committed",
        AcknowledgingSession, "_rolled_back", _rolled_back_and_done,
    ),
    (
        "openwire-commits-but-the-last", "a commit leaves the last command out",
        ProducerSession, "_commit", _commit_without_the_last,
    ),
    (
        "openwire-never-refused", "a message that cannot be kept gets a good response",
        ProducerSession, "_confirmed", _never_refused,
    ),
    (
        "openwire-commits-without-answers", "a commit does what a transaction sends, and no more",
        ProducerSession, "_add", _answers_are_not_staged,
    ),
    (
        "openwire-range-of-one", "a range of messages is acknowledged by its last",
        AcknowledgingSession, "_acknowledged", _range_of_one,
    ),
    (
        "openwire-at-once", "what a transaction does is done at once",
        ProducerSession, "_transaction_of", _in_no_transaction,
    ),
    (
        "openwire-says-it-twice", "a consumer gets each message twice",
        ConsumerSession, "deliver_own", _says_it_twice,
    ),
    (
        "openwire-given-up-not-settled", "a message is a dead letter, and is not done with",
        AcknowledgingSession, "_give_up", _letter_but_not_settled,
    ),
)  # fmt: skip
