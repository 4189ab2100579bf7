"""``WaitingList``: the messages of one priority that wait in memory, first in first out."""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.engine.model.message import MARK_FAILED, MARK_GONE, Message
from tmqp_server.engine.model.timers import ExpiryWheel
from tmqp_server.engine.model.times import NEVER

__all__ = ["WaitingList"]

#: Settled messages that a waiting list may hold among the living before it is tidied.
_TOLERATED_TOMBSTONES: Final = 1_024


class WaitingList:
    """Messages of one priority that wait, first in first out.

    A message that expires in the middle stays in the list as a tombstone, passed over by ``take``;
    the list is tidied when more than half of it is tombstones.
    """

    __slots__ = ("count", "_tombstones", "_messages", "_wheel")

    def __init__(self) -> None:
        #: Messages that wait, tombstones not counted.
        self.count = 0
        self._messages: deque[Message] = deque()
        self._tombstones = 0
        self._wheel: ExpiryWheel | None = None

    def put_last(self, message: Message) -> None:
        """Let *message* wait as the last."""
        self._messages.append(message)
        self._put(message)

    def put_first(self, message: Message) -> None:
        """Let *message* wait as the first."""
        self._messages.appendleft(message)
        self._put(message)

    def _put(self, message: Message) -> None:
        self.count += 1
        expires_at = message.expires_at
        if expires_at != NEVER:
            wheel = self._wheel
            if wheel is None:
                wheel = ExpiryWheel()
                self._wheel = wheel
            wheel.add(message, expires_at)

    def _stop_expiry(self, message: Message) -> None:
        expires_at = message.expires_at
        if expires_at != NEVER and self._wheel is not None:
            self._wheel.remove(message, expires_at)

    def take(self) -> Message:
        """Take out the first message; there must be one."""
        message = self._messages.popleft()
        while message.marks & MARK_GONE:
            self._tombstones -= 1
            message = self._messages.popleft()
        self.count -= 1
        if message.rare is not None:
            self._stop_expiry(message)
        return message

    def messages(self) -> list[Message]:
        """Those that wait, in order."""
        return [each for each in self._messages if not each.marks & MARK_GONE]

    def snapshot(self) -> list[Message]:
        """All there is at this moment, settled ones among them, copied in one go."""
        return list(self._messages)

    def take_newest(self) -> Message:
        """Take out the last message; there must be one."""
        message = self._messages.pop()
        while message.marks & MARK_GONE:
            self._tombstones -= 1
            message = self._messages.pop()
        self.count -= 1
        if message.rare is not None:
            self._stop_expiry(message)
        return message

    def take_oldest(self) -> Message:
        """Take out the message that has waited longest; there must be one."""
        return self.take()

    def look(self, newest: bool) -> Message:
        """The first message, or the last; there must be one."""
        messages = self._messages
        at = -1 if newest else 0
        while messages[at].marks & MARK_GONE:
            self._tombstones -= 1
            if newest:
                messages.pop()
            else:
                messages.popleft()
        return messages[at]

    def next_expiry(self) -> float:
        """When the next message becomes too old, or NEVER."""
        wheel = self._wheel
        return NEVER if wheel is None else wheel.next_due()

    def take_expired(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* messages that are too old.  The caller must settle each."""
        wheel = self._wheel
        if wheel is None:
            return []
        expired = wheel.take_due(now, limit)
        self.count -= len(expired)
        self._tombstones += len(expired)
        return expired

    def tidy(self) -> None:
        """Drop tombstones from the front, and from everywhere when they are too many."""
        messages = self._messages
        while messages and messages[0].marks & MARK_GONE:
            messages.popleft()
            self._tombstones -= 1
        if self._has_too_many_tombstones(len(messages)):
            self._drop_tombstones()

    def _has_too_many_tombstones(self, length: int) -> bool:
        return self._tombstones > _TOLERATED_TOMBSTONES and 2 * self._tombstones > length

    def _drop_tombstones(self) -> None:
        messages = self._messages
        self._messages = deque([each for each in messages if not each.marks & MARK_GONE])
        self._tombstones -= len(messages) - len(self._messages)

    def holds(self, message: Message) -> bool:
        """Whether a message waits here; as fast as a list is searched."""
        return not message.marks & MARK_GONE and message in self._messages

    def remove(self, message: Message) -> None:
        """Make *message*, which waits here, a tombstone.  The caller must settle it."""
        self.count -= 1
        self._tombstones += 1
        self._stop_expiry(message)

    def keep(self) -> None:
        """Count one of the messages of ``take_expired`` as waiting again, where it stood."""
        self.count += 1
        self._tombstones -= 1

    def take_failed(self) -> list[Message]:
        """Take out all messages that could not be saved, and all tombstones."""
        failed: list[Message] = []
        left: deque[Message] = deque()
        for message in self._messages:
            if message.marks & MARK_GONE:
                continue
            if not message.marks & MARK_FAILED:
                left.append(message)
                continue
            failed.append(message)
            self._stop_expiry(message)
        self._messages = left
        self._tombstones = 0
        self.count -= len(failed)
        return failed

    def sent_before(self) -> list[Message]:
        """The messages that wait although they have been sent, or put back."""
        return [each for each in self._messages if each.attempts or each.put_backs]

    def detach(self) -> list[deque[Message]]:
        """Take out everything at once, tombstones included, in no more time than for one."""
        messages = self._messages
        self._messages = deque()
        self._wheel = None
        self._tombstones = 0
        self.count = 0
        return [messages]
