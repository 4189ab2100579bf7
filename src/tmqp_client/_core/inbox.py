"""Inboxes: one bounded buffer of received messages for each consumer, and their index.

An inbox has two marks.  At the first one it becomes *congested*, and stays so until it has been
emptied to half of that mark; at the second one it is *overfull*.  It never refuses by itself: its
user checks the marks (:meth:`Inbox.put`) or asks it to refuse (:meth:`Inbox.offer`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from tmqp.errors import TmqpError
from tmqp.frames import Frame
from tmqp_client.config import ClientLimits
from tmqp_client.errors import AlreadyConsuming

__all__ = ["Inbox", "Listener", "Mailboxes", "withdraw"]

#: Stands for "every queue" where a queue id stands for one.
_EVERY_QUEUE: Final = -1

_T = TypeVar("_T")


class Listener(Protocol):
    """The code that is notified when items arrive in an inbox."""

    def arrived(self) -> None:
        """Handle that an item was put in."""

    def ended(self) -> None:
        """Handle that the connection is lost and nothing more will be put in."""


class Inbox(Generic[_T]):
    """A first-in, first-out buffer with bounds in items and bytes.

    :param max_items: items at which it is congested.
    :param max_bytes: bytes at which it is congested.
    :param overflow_factor: it is overfull at this multiple of either bound.

    Attributes to read: ``items`` (empty or not), ``size_bytes``, ``congested``; ``error`` is why
    nothing more will arrive on this connection; ``fresh`` is set by the code that fills the inbox,
    and cleared by the code that has told the ``listener``.
    """

    __slots__ = (
        "_low_bytes",
        "_low_items",
        "_max_bytes",
        "_max_items",
        "_over_bytes",
        "_over_items",
        "congested",
        "error",
        "fresh",
        "items",
        "listener",
        "size_bytes",
    )

    def __init__(self, max_items: int, max_bytes: int, overflow_factor: float = 1.0) -> None:
        self.items: deque[tuple[_T, int]] = deque()
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._low_items = max_items // 2
        self._low_bytes = max_bytes // 2
        self._over_items = max_items * overflow_factor
        self._over_bytes = max_bytes * overflow_factor
        self.size_bytes = 0
        self.congested = False
        self.fresh = False
        self.error: TmqpError | None = None
        self.listener: Listener | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def overfull(self) -> bool:
        """Whether it holds at least ``overflow_factor`` times one of its bounds."""
        return len(self.items) >= self._over_items or self.size_bytes >= self._over_bytes

    def put(self, item: _T, size: int) -> None:
        """Add an item of ``size`` bytes."""
        self.items.append((item, size))
        self.size_bytes += size
        if len(self.items) >= self._max_items or self.size_bytes >= self._max_bytes:
            self.congested = True

    def offer(self, item: _T, size: int) -> bool:
        """Add an item unless that would exceed a bound; return whether it was added."""
        if len(self.items) >= self._max_items or self.size_bytes + size > self._max_bytes:
            return False
        self.put(item, size)
        return True

    def take(self) -> _T:
        """Remove the oldest item and return it.

        :raises IndexError: if the inbox is empty.
        """
        item, size = self.items.popleft()
        self.size_bytes -= size
        if self.congested:
            self._check_low()
        return item

    def extract(self, wanted: Callable[[_T], bool]) -> list[tuple[_T, int]]:
        """Remove all items that are wanted, and return them with their sizes, oldest first."""
        taken: list[tuple[_T, int]] = []
        kept: deque[tuple[_T, int]] = deque()
        for item, size in self.items:
            if wanted(item):
                taken.append((item, size))
                self.size_bytes -= size
            else:
                kept.append((item, size))
        self.items = kept
        self._check_low()
        return taken

    def clear(self) -> int:
        """Remove everything; return the number of items."""
        count = len(self.items)
        self.items.clear()
        self.size_bytes = 0
        self.congested = False
        return count

    def _check_low(self) -> None:
        if len(self.items) <= self._low_items and self.size_bytes <= self._low_bytes:
            self.congested = False


class Mailboxes:
    """The inboxes of all consumers, by channel (whatever its case, F46) and queue.

    A message without an inbox is kept for a later consumer, within bounds, because messages arrive
    as soon as a channel is joined, before the program can open a consumer (F48).
    """

    __slots__ = ("_homeless", "_inboxes", "_limits")

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._inboxes: dict[tuple[str, int], Inbox[Frame]] = {}
        self._homeless: Inbox[Frame] = Inbox(limits.unclaimed_messages, limits.unclaimed_bytes)

    def open(self, channel: str, queue_id: int | None) -> Inbox[Frame]:
        """Open an inbox for one queue, or for all queues without one; it gets the messages kept for
        it.

        :raises AlreadyConsuming: if it exists.
        """
        key = _key(channel, queue_id)
        if key in self._inboxes:
            raise AlreadyConsuming(channel, queue_id)
        limits = self._limits
        inbox: Inbox[Frame] = Inbox(
            limits.consumer_messages, limits.consumer_bytes, limits.overflow_factor
        )
        self._inboxes[key] = inbox
        for frame, size in self._homeless.extract(lambda frame: self.inbox_for(frame) is inbox):
            inbox.put(frame, size)
        return inbox

    def close(self, channel: str, queue_id: int | None) -> int:
        """Remove an inbox; return the number of messages that were dropped with it."""
        inbox = self._inboxes.pop(_key(channel, queue_id), None)
        return 0 if inbox is None else inbox.clear()

    def has_channel(self, channel: str) -> bool:
        """Whether an inbox is open for the channel or one of its queues."""
        name = channel.lower()
        return any(key[0] == name for key in self._inboxes)

    def of_channel(self, channel: str) -> list[Inbox[Frame]]:
        """The inboxes of a channel and of its queues."""
        name = channel.lower()
        return [inbox for key, inbox in self._inboxes.items() if key[0] == name]

    def inbox_for(self, frame: Frame) -> Inbox[Frame] | None:
        """Return the inbox for a message: its queue's, else its channel's, else None."""
        channel = frame.target.lower()
        inbox = self._inboxes.get((channel, frame.content_type))
        return self._inboxes.get((channel, _EVERY_QUEUE)) if inbox is None else inbox

    def keep(self, frame: Frame) -> bool:
        """Keep a message that has no inbox yet; return whether there was room."""
        return self._homeless.offer(frame, len(frame.raw))

    def forget(self, channel: str) -> int:
        """Drop the kept messages of a channel that was left; return their number."""
        name = channel.lower()
        return len(self._homeless.extract(lambda frame: frame.target.lower() == name))

    def withdraw(self, key: tuple[str, int, str]) -> int:
        """Remove a message that is no longer in flight to this client, if the program has not taken
        it; return how many were removed.

        :param key: the channel in lower case, the queue and the message's id.
        """
        of_queue = self._inboxes.get(key[:2])
        # A message stays here although its queue gets an inbox after it.
        of_channel = self._inboxes.get((key[0], _EVERY_QUEUE))
        places = (of_queue, of_channel, self._homeless)
        return sum([withdraw(each, key) for each in places if each is not None])

    def crowded(self, awaited: bool) -> bool:
        """Whether an inbox is congested, or, while an answer is ``awaited``, overfull."""
        for inbox in self._inboxes.values():
            if inbox.congested and (not awaited or inbox.overfull):
                return True
        return False

    def lose(self) -> tuple[int, list[Inbox[Frame]]]:
        """Drop the messages that can no longer be answered because the connection is lost; the
        server redelivers them (F99).  Return their number, and all inboxes."""
        dropped = self._homeless.clear()
        inboxes = list(self._inboxes.values())
        for inbox in inboxes:
            dropped += len(inbox.extract(_is_owed_an_answer))
        return dropped, inboxes


def withdraw(inbox: Inbox[Frame], key: tuple[str, int, str]) -> int:
    """Remove the deliveries of a message from an inbox; return how many there were."""

    def is_it(frame: Frame) -> bool:
        return (
            frame.message_id == key[2]
            and frame.content_type == key[1]
            and frame.target.lower() == key[0]
            and frame.pending_acknowledge
        )

    return len(inbox.extract(is_it))


def _key(channel: str, queue_id: int | None) -> tuple[str, int]:
    return (channel.lower(), _EVERY_QUEUE if queue_id is None else queue_id)


def _is_owed_an_answer(frame: Frame) -> bool:
    return frame.pending_acknowledge
