"""The planted bugs: faults that are put into our code on purpose, to see that they are found.

A mutant replaces one method of the engine, the hub, the native door or the client's machine for as
long as a ``with`` block lasts.  The product has no switch for this; only the interpreted build can
be patched so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tmqp.extensions import LAPSE_REMOVED
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Connect, Synced
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.pulls import Puller
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.effects import Deliver, Effect, Erase
from tmqp_server.engine.flights import leave
from tmqp_server.engine.flights.runs import RunFlights
from tmqp_server.engine.keeping import Keeper
from tmqp_server.engine.model.message import MARK_SAVED, MARK_SAVING, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience, Session
from tmqp_server.engine.model.timers import Wakeups
from tmqp_server.engine.operations.administration import Administration
from tmqp_server.engine.operations.clients import Clients
from tmqp_server.storage.journal import Journal
from tmqp_sim.answer_bugs import ANSWER_BUGS
from tmqp_sim.api_bugs import API_BUGS
from tmqp_sim.appointment_bugs import APPOINTMENT_BUGS
from tmqp_sim.batch_bugs import BATCH_BUGS
from tmqp_sim.cell_bugs import CELL_BUGS
from tmqp_sim.choosing_bugs import CHOOSING_BUGS
from tmqp_sim.client_bugs import CLIENT_BUGS
from tmqp_sim.clock_bugs import CLOCK_BUGS
from tmqp_sim.commit_bugs import COMMIT_BUGS
from tmqp_sim.copy_bugs import COPY_BUGS
from tmqp_sim.dealing_bugs import DEALING_BUGS
from tmqp_sim.debt_bugs import DEBT_BUGS
from tmqp_sim.door_bugs import DOOR_BUGS
from tmqp_sim.feed_bugs import FEED_BUGS
from tmqp_sim.fleeting_bugs import FLEETING_BUGS
from tmqp_sim.foreign_bugs import FOREIGN_BUGS
from tmqp_sim.hold_bugs import HOLD_BUGS
from tmqp_sim.jms_bugs import JMS_BUGS
from tmqp_sim.key_bugs import KEY_BUGS
from tmqp_sim.link_bugs import LINK_BUGS
from tmqp_sim.log_in_bugs import LOG_IN_BUGS
from tmqp_sim.memory_bugs import MEMORY_BUGS
from tmqp_sim.move_bugs import MOVE_BUGS
from tmqp_sim.name_bugs import NAME_BUGS
from tmqp_sim.nsq_bugs import NSQ_BUGS
from tmqp_sim.rank_bugs import RANK_BUGS
from tmqp_sim.rate_bugs import RATE_BUGS
from tmqp_sim.run_bugs import RUN_BUGS
from tmqp_sim.shelf_bugs import SHELF_BUGS
from tmqp_sim.shell_bugs import SHELL_BUGS
from tmqp_sim.small_bugs import SMALL_BUGS
from tmqp_sim.tenant_bugs import TENANT_BUGS
from tmqp_sim.terms_bugs import TERMS_BUGS
from tmqp_sim.web_bugs import WEB_BUGS
from tmqp_sim.work_bugs import WORK_BUGS
from tmqp_sim.zmtp_bugs import ZMTP_BUGS

__all__ = ["MUTANTS", "Mutant", "planted"]


class Mutant:
    """One planted bug: what is replaced, by what, and what it comes to in words."""

    __slots__ = ("attribute", "make", "name", "owner", "text")

    def __init__(
        self, name: str, text: str, owner: Any, attribute: str, make: Callable[[Any], Any]
    ) -> None:
        self.name = name
        self.text = text
        self.owner = owner
        self.attribute = attribute
        self.make = make

    @contextmanager
    def planted(self) -> Iterator[Mutant]:
        """Have it for a while."""
        original = self.owner.__dict__[self.attribute]
        setattr(self.owner, self.attribute, self.make(original))
        try:
            yield self
        finally:
            setattr(self.owner, self.attribute, original)


@contextmanager
def planted(name: str) -> Iterator[Mutant | None]:
    """Have a bug for a while; none for an empty name.

    :raises KeyError: when there is no such mutant.
    """
    if not name:
        yield None
        return
    with MUTANTS[name].planted() as mutant:
        yield mutant


# --- The engine ----------------------------------------------------------------------------------


def _confirm_before_sync(original: Any) -> Any:
    def confirm(self: Outcomes, message: Message, *rest: Any) -> None:
        saving = message.marks & MARK_SAVING
        message.marks &= ~MARK_SAVING
        original(self, message, *rest)
        message.marks |= saving

    return confirm


def _failed_sync_is_positives(original: Any) -> Any:
    def synced(self: Keeper, command: Synced) -> None:
        command.ok = True
        original(self, command)

    return synced


def _held_by(clients: Clients, session: Session) -> Iterator[tuple[Queue, Message]]:
    for channel in clients._core.channels.by_key.values():
        for queue in channel.queues.values():
            for message in list(queue.all_flights().values()):
                if message.holder is session:
                    yield queue, message


def _forget_in_flight(original: Any) -> Any:
    def let_go(self: Clients, session: Session) -> None:
        for queue, message in _held_by(self, session):
            message.holder = None
            session.in_flight -= 1
            leave(queue, message)
            self._sender._outcomes.drop(queue, message)
        original(self, session)

    return let_go


def _return_at_once(original: Any) -> Any:
    def let_go(self: Clients, session: Session) -> None:
        held = list(_held_by(self, session))
        original(self, session)
        for queue, message in held:
            self._sender._flights.take_from_all(queue, message, LAPSE_REMOVED)
            self._sender._flights.land(queue, message)
            queue.put_first(message)
            self._administration._pump.pump(queue, self._core.now)

    return let_go


def _two_owners(original: Any) -> Any:
    def connect(self: Clients, command: Connect) -> None:
        if command.take_over:
            self._core.clients.pop(command.client_id, None)
        original(self, command)

    return connect


def _nothing(original: Any) -> Any:
    def nothing(*arguments: Any) -> None:
        """Do not."""

    return nothing


def _one_more_put_back(original: Any) -> Any:
    def configure(self: Queue, *arguments: Any) -> None:
        original(self, *arguments)
        self.put_back_limit += 1

    return configure


def _does_not_wait(original: Any) -> Any:
    def configure(self: Queue, *arguments: Any) -> None:
        original(self, *arguments)
        self.waits = False

    return configure


def _wider_window(original: Any) -> Any:
    def init(self: RunFlights, *arguments: Any) -> None:
        original(self, *arguments)
        self._window += 1

    return init


def _stale_audience(original: Any) -> Any:
    def remove(self: Audience, *arguments: Any) -> None:
        stale = self.stale
        original(self, *arguments)
        self.stale = stale

    return remove


def _sleeps_on(original: Any) -> Any:
    def arm(self: Wakeups, sleeper: Any, when: float) -> None:
        if sleeper.wake_at != float("inf"):
            return  # an earlier time is not taken notice of
        original(self, sleeper, when + 0.5)

    return arm


def _impatient(original: Any) -> Any:
    def overdue(self: Queue, now: float, limit: int) -> Any:
        return original(self, now + self.ack_timeout_s * 0.3, limit)

    return overdue


def _youngest_first(original: Any) -> Any:
    def put_last(self: Queue, message: Message) -> None:
        self.put_first(message)

    return put_last


def _regular_first(original: Any) -> Any:
    def take(self: Queue) -> Message:
        if self.high_count and self.regular_count:
            self.regular_count -= 1
            return self.regular.take()
        message: Message = original(self)
        return message

    return take


def _uncounted_drop(original: Any) -> Any:
    def drop(self: Outcomes, queue: Queue, message: Message) -> None:
        self.settle(queue, message)

    return drop


def _no_dead_letters(original: Any) -> Any:
    def give_up(self: Outcomes, queue: Queue, message: Message) -> None:
        self.drop(queue, message)

    return give_up


def _leaky_pull(original: Any) -> Any:
    def drop(self: Puller, queue: Queue, pulling: Any) -> None:
        reserved = queue.reserved
        original(self, queue, pulling)
        queue.reserved = reserved

    return drop


def _expires_early(original: Any) -> Any:
    def take_expired(self: Queue, now: float, limit: int) -> Any:
        return original(self, now + 0.25, limit)

    return take_expired


def _erases_at_delivery(original: Any) -> Any:
    """What is saved is given up as soon as somebody got it."""

    def steps(self: Broker, *arguments: Any) -> tuple[int, list[Effect]]:
        effects: list[Effect]
        at, effects = original(self, *arguments)
        more: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Deliver) and effect.message.marks & (MARK_SAVING | MARK_SAVED):
                channel = self._core.channels.find(effect.channel)
                queue = None if channel is None else channel.queues.get(effect.message.queue_id)
                if queue is not None:
                    rare = effect.message.rare
                    stored = effect.message.sequence if rare is None else rare.stored
                    more.append(Erase(0, queue.key, stored))
        return at, effects + more

    return steps


_LIST: Final = (
    Mutant(
        "confirm-before-sync", "a producer is told before the storage has answered",
        Outcomes, "confirm", _confirm_before_sync,
    ),
    Mutant(
        "failed-sync", "a failed sync is taken for a good one",
        Keeper, "_synced", _failed_sync_is_positives,
    ),
    Mutant(
        "owes-nothing", "what a failed batch should have settled is forgotten",
        Journal, "_owe", _nothing,
    ),
    Mutant(
        "no-notes", "at a stop in order nobody takes down how often messages were sent",
        Journal, "notes", _nothing,
    ),
    Mutant(
        "erased-early", "a saved message is erased when it is delivered, not when it is answered",
        Broker, "steps", _erases_at_delivery,
    ),
    Mutant(
        "forget-in-flight", "what a client had in hand is dropped when it disconnects",
        Clients, "let_go", _forget_in_flight,
    ),
    Mutant(
        "return-at-once", "what a client had in hand is sent again as soon as it disconnects",
        Clients, "let_go", _return_at_once,
    ),
    Mutant(
        "two-owners", "taking over an id leaves the older session as it is",
        Clients, "connect", _two_owners,
    ),
    Mutant(
        "lost-nack", "a decision to put a message back is forgotten",
        Outcomes, "mark_put_back", _nothing,
    ),
    Mutant(
        "put-back-limit", "a message is put back once more than its limit",
        Queue, "configure", _one_more_put_back,
    ),
    Mutant(
        "no-dead-letter", "a message that was put back too often is dropped, not moved",
        Outcomes, "_give_up", _no_dead_letters,
    ),
    Mutant(
        "no-waiting", "a queue does not wait for the acknowledge",
        Queue, "configure", _does_not_wait,
    ),
    Mutant(
        "wider-window", "a client may have one delivery more in hand than allowed",
        RunFlights, "__init__", _wider_window,
    ),
    Mutant(
        "no-credit", "the credit of a subscription is not spent",
        Sender, "_spend", _nothing,
    ),
    Mutant(
        "stale-audience", "who has left is still on the list of recipients",
        Audience, "remove", _stale_audience,
    ),
    Mutant(
        "ghost", "a client that disconnected stays in its channels",
        Administration, "leave_all", _nothing,
    ),
    Mutant(
        "oversleeps", "a queue is woken too late",
        Wakeups, "arm", _sleeps_on,
    ),
    Mutant(
        "impatient", "acknowledges time out before their time",
        Queue, "overdue", _impatient,
    ),
    Mutant(
        "expires-early", "messages expire before their time",
        Queue, "take_expired", _expires_early,
    ),
    Mutant(
        "not-woken", "queues are not told that their consumers can take messages again",
        Core, "wake_audience", _nothing,
    ),
    Mutant(
        "rest-forgotten", "what a step had no budget for is never gone on with",
        Core, "schedule", _nothing,
    ),
    Mutant(
        "youngest-first", "a message that waits goes before those that wait longer",
        Queue, "put_last", _youngest_first,
    ),
    Mutant(
        "regular-first", "high priority comes last",
        Queue, "take", _regular_first,
    ),
    Mutant(
        "miscounted", "a dropped message is missing in the books",
        Outcomes, "drop", _uncounted_drop,
    ),
    Mutant(
        "leaky-pull", "what a pull had reserved stays reserved",
        Puller, "_drop", _leaky_pull,
    ),
    *[Mutant(*bug) for bugs in (
        DOOR_BUGS, CLIENT_BUGS, RUN_BUGS, BATCH_BUGS, COMMIT_BUGS, MEMORY_BUGS, MOVE_BUGS,
        ANSWER_BUGS, CLOCK_BUGS,
        FLEETING_BUGS, SHELL_BUGS, WEB_BUGS, API_BUGS, FOREIGN_BUGS, WORK_BUGS, DEALING_BUGS,
        CHOOSING_BUGS, KEY_BUGS, TERMS_BUGS, TENANT_BUGS, APPOINTMENT_BUGS, LINK_BUGS, FEED_BUGS,
        NSQ_BUGS, DEBT_BUGS, SHELF_BUGS, NAME_BUGS, COPY_BUGS, HOLD_BUGS, ZMTP_BUGS, SMALL_BUGS,
        JMS_BUGS, CELL_BUGS, RANK_BUGS, RATE_BUGS, LOG_IN_BUGS,
    ) for bug in bugs],
)  # fmt: skip

#: By name.
MUTANTS: Final[dict[str, Mutant]] = {mutant.name: mutant for mutant in _LIST}
