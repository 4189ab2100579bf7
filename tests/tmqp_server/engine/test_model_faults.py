"""The machine of ``test_model.py`` can fail: brokers with a planted fault, each of them caught.

The faults are put into the interpreted engine only: a compiled class takes none.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

import tmqp
from tests.tmqp_server.engine.test_model import CountingMachine, Machine
from tmqp_server.engine.commands import Browse, Command
from tmqp_server.engine.delivery.deferring import Deferring
from tmqp_server.engine.delivery.intake import Intake
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.pulls import Puller
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.effects import Deliver, EndPull
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.deferrals import Deferral
from tmqp_server.engine.model.message import MARK_ANSWERED, MARK_BACK, MARK_CONFIRMED, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience, Pulling, Session, Subscription
from tmqp_server.engine.model.waiting import WaitingList
from tmqp_server.engine.model.waiting_parts import WaitingPart
from tmqp_server.engine.options import QueueChanges, QueueOptions
from tmqp_server.engine.reading.browsing import Browsing

pytestmark = [
    pytest.mark.cold,
    pytest.mark.skipif(tmqp.compiled, reason="compiled classes cannot be patched"),
]

Patch = pytest.MonkeyPatch


def a_lost_nack(patch: Patch) -> None:
    """A negative acknowledge puts nothing back."""
    patch.setattr(Outcomes, "mark_put_back", lambda *_: None)


def a_limit_one_too_high(patch: Patch) -> None:
    """A queue takes one message more than its limit."""
    right = Outcomes.problem_of_queue

    def wrong(
        self: Outcomes, queue: Queue, size: int, more: int, more_bytes: int, has_disk: bool = False
    ) -> int:
        return right(self, queue, size, more - 1, more_bytes, has_disk)

    patch.setattr(Outcomes, "problem_of_queue", wrong)


def a_put_back_too_many(patch: Patch) -> None:
    """A message is put back once more than its limit."""
    right = Queue.configure

    def wrong(self: Queue, *values: object) -> None:
        right(self, *values)  # type: ignore[arg-type]
        self.put_back_limit += 1

    patch.setattr(Queue, "configure", wrong)


def in_flight_forgotten(patch: Patch) -> None:
    """What a client had that disconnected does not come back."""
    right = Workflow._close

    def wrong(self: Workflow, queue: Queue, message: Message, now: float) -> None:
        if not message.producer.alive or not message.marks & MARK_ANSWERED:
            message.marks &= ~MARK_BACK
        right(self, queue, message, now)

    patch.setattr(Workflow, "_close", wrong)


def double_delivery(patch: Patch) -> None:
    """A message that comes again comes twice."""
    right = Sender.send

    def wrong(self: Sender, queue: Queue, message: Message, now: float) -> None:
        right(self, queue, message, now)
        out = self._core.out
        if message.attempts > 1 and out and isinstance(out[-1], Deliver):
            out.append(out[-1])

    patch.setattr(Sender, "send", wrong)


def one_in_two_hands(patch: Patch) -> None:
    """Round robin gives a message to the one whose turn it is, and to the next."""
    right = Sender._candidates

    def wrong(self: Sender, queue: Queue, audience: Audience) -> list[Subscription]:
        return right(self, queue, audience)[::-1]

    patch.setattr(Sender, "_candidates", wrong)


def too_early(patch: Patch) -> None:
    """An acknowledge is missed half a second before its time."""
    right = Queue.overdue
    patch.setattr(Queue, "overdue", lambda self, now, limit: right(self, now + 0.5, limit))


def confirmed_twice(patch: Patch) -> None:
    """A producer is told again when its message times out."""
    right = Workflow.time_out

    def wrong(self: Workflow, queue: Queue, message: Message, now: float) -> None:
        message.marks &= ~MARK_CONFIRMED
        right(self, queue, message, now)

    patch.setattr(Workflow, "time_out", wrong)


def a_pull_loses_one(patch: Patch) -> None:
    """Each pull takes out one message more than it sends (F109)."""
    right = Puller._finish

    def wrong(self: Puller, queue: Queue, pulling: Pulling) -> None:
        right(self, queue, pulling)
        if queue.discipline.pulled and queue.high_count + queue.regular_count:
            self._outcomes.drop(queue, queue.take())

    patch.setattr(Puller, "_finish", wrong)


def end_comes_first(patch: Patch) -> None:
    """A pull is said to be over before its last message."""
    right = Puller._finish

    def wrong(self: Puller, queue: Queue, pulling: Pulling) -> None:
        right(self, queue, pulling)
        out = self._core.out
        if len(out) > 1 and isinstance(out[-1], EndPull):
            out.insert(-2, out.pop())

    patch.setattr(Puller, "_finish", wrong)


def priority_ignored(patch: Patch) -> None:
    """High priority waits behind the rest."""

    def wrong(self: Queue) -> Message:
        waiting = self.regular if self.regular_count else self.high
        if waiting is self.regular:
            self.regular_count -= 1
        else:
            self.high_count -= 1
        return waiting.take()

    patch.setattr(Queue, "take", wrong)


def credit_not_spent(patch: Patch) -> None:
    """Deliveries cost no credit."""
    patch.setattr(Sender, "_spend", lambda *_: None)


def gone_by_the_books(patch: Patch) -> None:
    """A message that is cleared is not counted."""
    right = Outcomes.drop

    def wrong(self: Outcomes, queue: Queue, message: Message) -> None:
        right(self, queue, message)
        queue.counters.dropped -= 1

    patch.setattr(Outcomes, "drop", wrong)


def a_cancel_in_words_only(patch: Patch) -> None:
    """A cancelled message is answered for, and comes all the same."""
    patch.setattr(Deferring, "_cancel", lambda *_: None)


def deferred_out_of_order(patch: Patch) -> None:
    """Of two messages that are due at once, the one that came last goes first."""
    right = Deferral.is_before

    def wrong(self: Deferral, other: Deferral) -> bool:
        if self.due_at == other.due_at:
            return self.sequence > other.sequence
        return right(self, other)

    patch.setattr(Deferral, "is_before", wrong)


def a_removed_message_stays(patch: Patch) -> None:
    """A removed message is answered for, and comes all the same."""
    patch.setattr(Deferring, "remove", lambda *_: None)


def a_disk_without_end(patch: Patch) -> None:
    """A queue keeps on disk what its handler wants kept, whatever its limit."""
    right = Queue.configure

    def wrong(self: Queue, *values: object) -> None:
        right(self, *values)  # type: ignore[arg-type]
        self.disk_cap = 1 << 60

    patch.setattr(Queue, "configure", wrong)


def dead_letters_go_on(patch: Patch) -> None:
    """A queue that names no queue of dead letters any more goes on using the one it had."""
    right = QueueChanges.applied_to

    def wrong(self: QueueChanges, old: QueueOptions) -> QueueOptions:
        new = right(self, old)
        new.dead_letter = new.dead_letter or old.dead_letter
        return new

    patch.setattr(QueueChanges, "applied_to", wrong)


def a_look_that_takes(patch: Patch) -> None:
    """Who looks into a queue gives messages another place."""
    right = WaitingList.snapshot

    def wrong(self: WaitingList) -> list[WaitingPart]:
        parts = right(self)
        shown = parts[0].messages()
        if len(shown) > 1:
            self.remove(shown[0])
            self.put_last(shown[0])
        return parts

    patch.setattr(WaitingList, "snapshot", wrong)


def a_look_that_begins_behind(patch: Patch) -> None:
    """A portion begins behind the message from which somebody wants to look."""
    right = Browsing.browse

    def wrong(self: Browsing, command: Command, session: Session) -> None:
        assert isinstance(command, Browse)
        command.first += command.first > 0
        right(self, command, session)

    patch.setattr(Browsing, "browse", wrong)


def receivers_not_counted(patch: Patch) -> None:
    """Who asks to how many a message went is told of nobody."""

    def wrong(self: Intake, queue: Queue, message: Message, now: float) -> None:
        message.rarely().receivers = 0
        self._workflow.receive(queue, message, now)

    patch.setattr(Intake, "_receive_counting", wrong)


def a_lapse_in_silence(patch: Patch) -> None:
    """Nobody is told that a delivery is his no more."""

    def wrong(self: Flights, queue: Queue, message: Message, client: Client, reason: str) -> None:
        self._take_from(queue, message, client)

    patch.setattr(Flights, "_take_away", wrong)


FAULTS: tuple[Callable[[Patch], None], ...] = (
    a_lost_nack,
    a_limit_one_too_high,
    a_put_back_too_many,
    in_flight_forgotten,
    double_delivery,
    one_in_two_hands,
    too_early,
    confirmed_twice,
    a_pull_loses_one,
    end_comes_first,
    priority_ignored,
    credit_not_spent,
    gone_by_the_books,
    a_cancel_in_words_only,
    deferred_out_of_order,
    a_removed_message_stays,
    a_disk_without_end,
    dead_letters_go_on,
    a_look_that_takes,
    a_look_that_begins_behind,
    receivers_not_counted,
    a_lapse_in_silence,
)


def run(examples: int, machine: type[Machine]) -> None:
    """A machine, as it is, on whatever the engine is now; nothing is shrunk."""

    class Again(machine):  # type: ignore[valid-type,misc]
        """A machine of its own: what is remembered of others is not repeated."""

    run_state_machine_as_test(
        seed(1)(Again),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__))
def test_a_planted_fault_is_caught(
    fault: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises((AssertionError, IndexError, KeyError)):
        run(4_000, CountingMachine if fault is receivers_not_counted else Machine)
