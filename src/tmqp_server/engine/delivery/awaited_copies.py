"""Confirms of messages in memory that wait for the copies that feeds make (``awaits_copies``).

A source that stores nothing, such as a broadcast, sends nothing to the storage, so its confirm
would not wait for the disk.  If a push requests it, the confirm waits for the last of the copies
that durable queues get: the storage answers for them in order.  Usually the copies are made in the
step of the push.  A message that has to wait keeps its confirm until then (``MARK_AWAITS``); if it
expires or is removed by an operator before, it is confirmed.

A feed without room is skipped; then the confirm is negative.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import Append, Confirm
from tmqp_server.engine.model.message import MARK_AWAITS, MARK_FED, MARK_GONE, MARK_SAVING, Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["NACK_STORAGE", "CopyingStep", "tell_held"]

#: The reason of the negative confirm of a message that the storage cannot save now.
NACK_STORAGE: Final = "storage"


@final
class CopyingStep:
    """A step in which a message is copied, from now on, and the handling of its confirm."""

    __slots__ = ("_before", "_core", "_message", "_queue", "_skipped")

    def __init__(self, core: Core, queue: Queue, message: Message) -> None:
        self._core = core
        self._queue = queue
        self._message = message
        self._before = len(core.out)
        self._skipped = _skipped(queue)

    def received(self) -> None:
        """Handle the confirm of a message that was accepted, and copied unless it has to wait."""
        core = self._core
        message = self._message
        place = self._place_of_confirm()
        if place < 0:
            return
        confirm = core.out[place]
        assert isinstance(confirm, Confirm), "it was found"
        del core.out[place]
        core.tally.count_confirms(-1)  # it is counted again when it is sent
        queue = self._queue
        waits = not message.marks & (MARK_FED | MARK_GONE | MARK_SAVING)
        if waits and queue.discipline.sends and not queue.exclusive:
            message.marks |= MARK_AWAITS
            message.rarely().held_confirm = confirm
        else:
            self._tell(confirm)

    def copied(self) -> None:
        """Handle the confirm of a message that had to wait and has been copied now."""
        self._tell(_take_confirm(self._message))

    def _tell(self, confirm: Confirm) -> None:
        """Send the confirm when the copies are saved."""
        core = self._core
        if _skipped(self._queue) != self._skipped:
            confirm.positive = False
            confirm.reason = NACK_STORAGE
            confirm.source = ""
            confirm.forwarded = None
        else:
            last = self._last_copy()
            if last is not None and last.marks & MARK_SAVING:
                last.rarely().held_confirm = confirm
                return
        _send(core, self._message, confirm)

    def _place_of_confirm(self) -> int:
        """The index of the message's positive confirm in the effects; -1 if there is none."""
        out = self._core.out
        message = self._message
        for place in range(self._before, len(out)):
            effect = out[place]
            if (
                isinstance(effect, Confirm)
                and effect.positive
                and effect.session == message.producer.number
                and effect.message_id == message.message_id
            ):
                return place
        return -1

    def _last_copy(self) -> Message | None:
        """The last copy that the storage was asked to save."""
        out = self._core.out
        wire = self._message.wire
        for place in range(len(out) - 1, self._before - 1, -1):
            effect = out[place]
            if isinstance(effect, Append) and effect.message.wire is wire:
                return effect.message
        return None


def tell_held(core: Core, message: Message) -> None:
    """Send the confirm of a message that came to its end while the confirm waited."""
    _send(core, message, _take_confirm(message))


def _take_confirm(message: Message) -> Confirm:
    """Take the waiting confirm from a message."""
    message.marks &= ~MARK_AWAITS
    rare = message.rarely()
    confirm = rare.held_confirm
    rare.held_confirm = None
    assert isinstance(confirm, Confirm), "it has waited with the message"
    return confirm


def _send(core: Core, message: Message, confirm: Confirm) -> None:
    if not message.producer.alive:
        core.skip_confirms(1)
        return
    core.tally.count_confirms(1, confirm.positive)
    core.out.append(confirm)


def _skipped(queue: Queue) -> int:
    """How often the feeds of a queue had no room, in total."""
    feeds = queue.feeds
    return 0 if feeds is None else sum([feed.skipped for feed in feeds])
