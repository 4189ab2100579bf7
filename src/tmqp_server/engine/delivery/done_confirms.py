"""Confirms of durable messages that are done with before the storage has them (``done_confirms``).

A message goes to its consumer while it is being saved.  If the consumer acknowledges it before the
storage has answered, nobody is owed it any more: a crash could only bring it back.  So there is
nothing for its producer to wait for, and a push may ask to be told then.  The broker goes on as
always: what was not written yet is not written at all, and what was is erased.

Somebody else may still be owed what the storage does not have.  Then the confirm waits for it:

* Several consumers get the message, and not all need have acknowledged it: a queue that does not
  give each message to one, or one that feeds others.
* A copy that a feed made bears the confirm of its source, which stands for all copies.
* Readers get what is settled, from a queue that retains it.
* Other nodes have the message, too.

Nor does a refusal do, whatever becomes of the message then, nor the end of its time.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.awaited_copies import tell_held
from tmqp_server.engine.model.message import MARK_COPY, MARK_NEGATIVE, MARK_SHARED, Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["confirm_done"]

#: With one of these the confirm waits for the storage.
_WAITS: Final = MARK_COPY | MARK_NEGATIVE | MARK_SHARED


def confirm_done(core: Core, queue: Queue, message: Message) -> None:
    """Let the confirm of a message go that its consumer has acknowledged, unless somebody else is
    owed the message.  Nothing is done where no confirm waits."""
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
