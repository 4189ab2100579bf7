"""Messages that exist only in memory and that the storage must still save: they are *owed* to it.

Theory of operation.  Some messages enter a durable queue when no producer can be notified of a
failure, and nothing is left from which they could be made again:

* copies by a feed of a source in memory, which answers its producer when it has a message, and
  settles the message when its feeds have it;
* dead letters, whose producers were answered long ago, or never are.

Such a message is marked (``MARK_OWED``) when it is made: it stays in memory where it is, is sent
and settled like any other, and the storage gets it again and again until it is saved.  Meanwhile it
is as safe as it was in its source.

It stays, instead of going back, because that may be impossible: a broadcast stores nothing, a
deferred message has already passed, a full queue has accepted another one, and the message may be
in flight.  The price: if it is saved later, it is behind the messages that were saved in between
after a restart.

A copy of a message that a durable source saves in the same step is not owed: it fails together with
the message, whose producer is notified.  A dead letter from a durable queue has an older copy there
until it is saved itself; it is owed nevertheless, because that copy is not marked as a dead letter.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.saving import Saver
from tmqp_server.engine.model.message import (
    MARK_GONE,
    MARK_OWED,
    MARK_SAVED,
    MARK_SAVING,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.timers import Sleeper

__all__ = ["DebtTimer", "Debts", "owes_copies"]

#: How long to wait after the storage has failed, in seconds.
_RETRY_S: Final = 0.02
_KEPT: Final = MARK_SAVED | MARK_SAVING
#: A message with one of these is no longer owed, or will soon be known not to be.
_OVER: Final = MARK_SAVING | MARK_GONE


def owes_copies(source: Queue, message: Message) -> bool:
    """Whether the copies of a message must be saved even if the storage fails now (see above)."""
    return not source.saves or message.marks & _KEPT == 0 or message.marks & MARK_OWED != 0


class DebtTimer(Sleeper):
    """Wakes ``Debts`` to ask the storage again."""

    __slots__ = ()


class Debts:
    """Asks the storage again for messages that it could not save."""

    __slots__ = ("_core", "_owed", "_saver", "_timer")

    def __init__(self, core: Core, saver: Saver) -> None:
        self._core = core
        self._saver = saver
        #: The owed messages and their queues, in the order in which saving failed.
        self._owed: dict[Message, Queue] = {}
        self._timer = DebtTimer()

    def add(self, queue: Queue, message: Message) -> None:
        """Have a message saved later that could not be saved, or cannot be saved now."""
        self._owed[message] = queue
        self._wake_later()

    def settle(self, message: Message) -> None:
        """Stop owing a message that is settled before it is saved; older copies in other queues are
        erased."""
        self._owed.pop(message, None)
        self._saver.erase_older(message)

    def wake(self) -> None:
        """Ask for as many messages as the storage has room for and the budget allows."""
        self._pay()
        if self._owed:
            self._wake_later()

    def _wake_later(self) -> None:
        self._core.wakeups.arm(self._timer, self._core.now + _RETRY_S)

    def _pay(self) -> None:
        core = self._core
        owed = self._owed
        for _ in range(len(owed)):
            if core.budget <= 0:
                return
            message = next(iter(owed))
            queue = owed[message]
            is_over = _is_over(queue, message)
            if not is_over and not core.can_save(message.size):
                return
            core.budget -= 1
            del owed[message]
            if is_over:
                continue
            more = 0 if message.marks & MARK_SAVED else message.size
            if queue.disk_bytes + more > queue.disk_cap:
                owed[message] = queue  # until a message there is settled
            else:
                self._saver.save(queue, message)


def _is_over(queue: Queue, message: Message) -> bool:
    """Whether a message need not be saved any more.  A saved copy counts only if it is in this
    queue."""
    if message.marks & _OVER or queue.closed or not queue.saves:
        return True
    return message.marks & MARK_SAVED != 0 and message.rarely().stored != 0
