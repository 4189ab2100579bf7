"""Cancels deferred messages, and removes single waiting messages.

Such a message counts as cleared.  The client is answered when the storage has erased it: after
that, not even a crash brings it back.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.engine.commands import CancelMessage, Command
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.sharing import tell
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import ClearStored
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.deferrals import DeferralShelf
from tmqp_server.engine.model.message import (
    MARK_CONFIRMED,
    MARK_HIGH,
    MARK_NEGATIVE,
    MARK_SAVED,
    MARK_SAVING,
    MARK_SHARED,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import BrowsedMessage
from tmqp_server.engine.model.tails import Tail

__all__ = ["Deferring", "tell_cancelled"]

#: The reason of the negative confirm of a message that is cancelled before it was confirmed.
_CANCELLED: Final = "cancelled"


class Deferring:
    """Cancels deferred messages and removes waiting ones."""

    __slots__ = ("_core", "_directory", "_flights", "_outcomes")

    def __init__(
        self, core: Core, directory: Directory, flights: Flights, outcomes: Outcomes
    ) -> None:
        self._core = core
        self._directory = directory
        self._flights = flights
        self._outcomes = outcomes

    def cancel(self, command: Command, session: Session) -> None:
        """Remove the deferred messages with an id; each costs a unit of work."""
        assert isinstance(command, CancelMessage)
        queue = self._directory.find_queue(command.channel, command.queue_id)
        code = RESULT_NOT_FOUND
        if queue is not None:
            most = self._core.limits.max_batch_length
            for message in queue.deferred.find(command.message_id, most):
                self._core.work += 1
                self._cancel(queue, message)
                most -= 1
                code = RESULT_OK
            shelf = queue.deferred.shelf
            if shelf is not None and self._cancel_on_disk(queue, shelf, command.message_id, most):
                code = RESULT_OK
            if code == RESULT_OK:
                self._core.arm(queue)
        self._core.reply(session, command.request, code)

    def _cancel(self, queue: Queue, message: Message) -> None:
        self._flights.cancel(queue, message)
        self._settle(queue, message)

    def _cancel_on_disk(
        self, queue: Queue, shelf: DeferralShelf, message_id: str, most: int
    ) -> bool:
        """The same for messages that are on disk only; return False if there are none."""
        found = 0
        for high_priority in (True, False):
            line = shelf.line_of(high_priority)
            for entry in line.find(message_id, most - found):
                found += 1
                self._core.work += 1
                self._flights.cancel_on_disk(queue, line, entry)
                self._forget(queue, high_priority, entry.sequence)
        return found > 0

    def remove(self, queue: Queue, message: Message) -> None:
        """Remove a message that waits in memory."""
        queue.withdraw(message)
        self._outcomes.dequeued(queue, message)
        self._flights.count_cleared(queue, 1)
        self._settle(queue, message)
        queue.tidy()
        self._core.release_pull(queue)
        if queue.spilled:
            self._core.refill(queue)

    def remove_from_disk(self, queue: Queue, tail: Tail, item: BrowsedMessage) -> None:
        """Remove a message that waits on disk only."""
        core = self._core
        tail.skip[item.sequence] = None  # a portion with it may be arriving
        self._flights.take_from_disk(queue, tail, 1, item.size)
        self._flights.unstore(queue, item.size)
        self._flights.count_cleared(queue, 1)
        self._flights.close_tail(queue, tail, item.high_priority)
        self._forget(queue, item.high_priority, item.sequence)
        if queue.fleeting and queue.count == 0:
            core.note_emptied(queue)

    def _settle(self, queue: Queue, message: Message) -> None:
        core = self._core
        tell_cancelled(self._outcomes, message)
        if message.marks & MARK_SHARED:
            tell(core.out, core.channels, queue, message)
        stored = message.rarely().stored or message.sequence
        kept = message.marks & (MARK_SAVED | MARK_SAVING) != 0
        self._outcomes.settle(queue, message)
        if kept and core.stores:
            # The message is erased already; this change only makes the answer wait for it.
            self._forget(queue, message.marks & MARK_HIGH != 0, stored)

    def _forget(self, queue: Queue, high_priority: bool, stored: int) -> None:
        """Have a stored message erased before the client is answered."""
        self._core.keep(ClearStored(queue.key, high_priority, stored, stored))


def tell_cancelled(outcomes: Outcomes, message: Message) -> None:
    """Send the producer a negative confirm if it waits for one: the message is not delivered."""
    message.marks |= MARK_NEGATIVE
    if message.marks & (MARK_WANTS | MARK_CONFIRMED) == MARK_WANTS:
        outcomes.confirm(message, False, _CANCELLED, "", None)
