"""Confirms of durable messages that are acknowledged before the storage has them
(``done_confirms``).

A message is delivered to its consumer while it is being saved.  If the consumer acknowledges it
before the storage has answered, it no longer has to be delivered: after a crash it could only be
redelivered.  So its producer has nothing to wait for, and a push may request a confirm at that
moment.  The rest is as usual: a message that was not written yet is not written at all, and a
written one is erased.

The confirm waits for the storage if the message may still be needed:

* Several consumers get the message, and not all need have acknowledged it: in a queue that does not
  give each message to one consumer, or that feeds others.
* It is a copy that a feed made: its confirm stands for all copies.
* Its queue retains settled messages for readers.
* Other nodes have the message, too.

A refusal by the consumer, or the expiry of the message, does not release the confirm either.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.awaited_copies import tell_held
from tmqp_server.engine.model.message import MARK_COPY, MARK_NEGATIVE, MARK_SHARED, Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["confirm_done"]

#: A message with one of these has its confirm wait for the storage.
_WAITS: Final = MARK_COPY | MARK_NEGATIVE | MARK_SHARED


def confirm_done(core: Core, queue: Queue, message: Message) -> None:
    """Release the waiting confirm of a message that its consumer has acknowledged, unless the
    message may still be needed.  If no confirm waits, do nothing."""
    rare = message.rare
    if (
        rare is not None
        and rare.held_confirm is not None
        and not message.marks & _WAITS
        and queue.exclusive
        and queue.feeds is None
        and not queue.options.retains()
    ):
        tell_held(core, message)
