"""``Lane``: messages in the order of their stamps."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

from tmqp_server.engine.model.message import MARK_GONE, Message

__all__ = ["Lane"]


class Lane:
    """Messages that the same consumers would take, by their stamps.

    ``mask`` has the filters that accept the messages, as far as these filters existed at the epoch
    ``seen``.
    """

    __slots__ = ("mask", "seen", "messages", "stamps")

    def __init__(self, mask: int, seen: int) -> None:
        self.mask = mask
        self.seen = seen
        self.messages: deque[Message] = deque()
        self.stamps: deque[int] = deque()

    def put(self, stamp: int, message: Message) -> None:
        """Insert a message at the position of its stamp."""
        stamps = self.stamps
        if not stamps or stamps[-1] < stamp:
            stamps.append(stamp)
            self.messages.append(message)
            return
        at = bisect_left(stamps, stamp)
        stamps.insert(at, stamp)
        self.messages.insert(at, message)

    def place_of(self, stamp: int) -> int:
        """How many messages are before a stamp."""
        return bisect_left(self.stamps, stamp)

    def take_at(self, place: int) -> Message:
        """Take out the message at an index, in linear time."""
        message = self.messages[place]
        del self.messages[place], self.stamps[place]
        return message

    def take(self) -> Message:
        """Take out the first message; there must be one."""
        self.stamps.popleft()
        return self.messages.popleft()

    def take_newest(self) -> Message:
        """Take out the last message; there must be one."""
        self.stamps.pop()
        return self.messages.pop()

    def shed(self, newest: bool) -> int:
        """Drop tombstones from one end; return their number."""
        messages, stamps = self.messages, self.stamps
        at = -1 if newest else 0
        shed = 0
        while messages and messages[at].marks & MARK_GONE:
            shed += 1
            if newest:
                messages.pop()
                stamps.pop()
            else:
                messages.popleft()
                stamps.popleft()
        return shed

    def keep_only(self, unwanted: int) -> list[Message]:
        """Remove the messages that have one of these marks, and return them in order."""
        found: list[Message] = []
        messages: deque[Message] = deque()
        stamps: deque[int] = deque()
        for stamp, message in zip(self.stamps, self.messages, strict=True):
            if message.marks & unwanted:
                found.append(message)
            else:
                messages.append(message)
                stamps.append(stamp)
        self.messages = messages
        self.stamps = stamps
        return found
