"""Copies that the storage could not save, and that nobody else has any more: they are owed to it.

Theory of operation.  A source in memory answers its producer when it has a message, and is done
with it when its feeds have it.  So where the copy in a durable target cannot be saved, nobody could
be told, and nothing is left that could be copied again.  Such a copy is marked (``MARK_OWED``) when
it is made: it stays where it is, in memory, is sent and settled as any other, and the storage is
asked again for it until it has it.  Meanwhile it is as safe as it was in the source.

The copy stays, instead of going back to the source, because the source may have none of its own: a
broadcast keeps nothing, a message that is not due has passed already, and consumers of the target
may have the copy in hand.  The price: saved later, it stands behind what was saved in between,
should the server begin again.

A copy of a message that a durable source was asked to keep in the same step is not owed: it fails
with the message, whose producer is told.
"""

from __future__ import annotations

from collections import deque
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

__all__ = ["FeedDebts", "owes_copies"]

_KEPT: Final = MARK_SAVED | MARK_SAVING
#: With one of these nothing is owed any more, or is about to be known.
_OVER: Final = _KEPT | MARK_GONE


def owes_copies(source: Queue, message: Message) -> bool:
    """Whether a message is promised to the feeds of a queue whatever the storage says."""
    return not source.saves or message.marks & _KEPT == 0 or message.marks & MARK_OWED != 0


class FeedDebts:
    """Asks the storage again for copies that it could not save."""

    __slots__ = ("_core", "_owed", "_saver")

    def __init__(self, core: Core, saver: Saver) -> None:
        self._core = core
        self._saver = saver
        #: In the order in which they failed; some may be settled by now.
        self._owed: deque[tuple[Queue, Message]] = deque()

    def __len__(self) -> int:
        return len(self._owed)

    def add(self, queue: Queue, message: Message) -> None:
        """Note a copy that could not be saved."""
        self._owed.append((queue, message))

    def pay(self) -> None:
        """Ask for as many as the storage has room for, and the budget carries."""
        core = self._core
        owed = self._owed
        for _ in range(len(owed)):
            if core.budget <= 0:
                return
            queue, message = owed[0]
            if not (message.marks & _OVER or queue.closed or not queue.saves):
                if not core.can_save(message.size):
                    return
                if queue.disk_bytes + message.size > queue.disk_cap:
                    owed.append((queue, message))  # until something there is settled
                else:
                    self._saver.save(queue, message)
            core.budget -= 1
            owed.popleft()
