"""``WaitingList``: the messages of one priority that wait in memory, first in first out."""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.engine.model.message import MARK_FAILED, MARK_GONE, Message, Wires
from tmqp_server.engine.model.packed_parts import MOST_PACKED, PackedPart
from tmqp_server.engine.model.timers import ExpiryWheel
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.model.waiting_parts import WaitingPart

__all__ = ["WaitingList"]

_NO_PARTS: Final[deque[WaitingPart]] = deque()
#: Settled messages that a waiting list may contain before it is tidied.
_TOLERATED_TOMBSTONES: Final = 1_024


class WaitingList:
    """Messages of one priority that wait, first in first out.

    A message that expires in the middle stays in the list as a tombstone, skipped by ``take``; the
    list is tidied when more than half of it is tombstones.

    Many messages that arrived together may wait as one :class:`WaitingPart`, which is taken apart
    when it is their turn.  The list begins with single messages; parts come after them, and
    everything that arrives later after these.
    """

    __slots__ = ("count", "_has_parts", "_later", "_messages", "_tombstones", "_wheel")

    def __init__(self) -> None:
        #: Waiting messages, without tombstones.
        self.count = 0
        self._messages: deque[Message] = deque()
        #: Parts behind these, and whether there are any.
        self._later: deque[WaitingPart] = _NO_PARTS
        self._has_parts = False
        self._tombstones = 0
        self._wheel: ExpiryWheel | None = None

    def put_last(self, message: Message) -> None:
        """Append *message*."""
        if self._has_parts:
            self._put_behind_parts(message)
        else:
            self._messages.append(message)
        self._put(message)

    def put_part(self, part: WaitingPart, count: int) -> None:
        """Append so many messages, which do not expire, as one part."""
        if not self._has_parts:
            self._has_parts = True
            self._later = deque()
        self._later.append(part)
        self.count += count

    def put_packed(self, message: Message, packed: bytes, wires: Wires) -> None:
        """Append a message that does not expire, as its bytes if others are packed, too.

        Then *message* is dropped, and *wires* makes another one from *packed* when it is its turn.
        """
        part = self._later[-1] if self._has_parts else None
        if part is not None and part.take_in(message, packed):
            self.count += 1
        elif part is not None and part.is_loose and len(part.messages()) < MOST_PACKED:
            self.put_last(message)  # a separate part for one or two would take more memory
        else:
            row = PackedPart(message.queue_id, wires)
            row.take_in(message, packed)
            self.put_part(row, 1)

    def _put_behind_parts(self, message: Message) -> None:
        part = self._later[-1]
        if not part.is_loose:
            part = WaitingPart([])
            self._later.append(part)
        part.messages().append(message)

    def _refill(self) -> None:
        """Take parts apart until the list begins with single messages, if there are any."""
        later = self._later
        while later and not self._messages:
            self._messages = deque(later.popleft().messages())
        if not later:
            self._forget_parts()

    def _last_part(self) -> list[Message] | None:
        """The messages of the last part, for taking one out; None if there is no part."""
        later = self._later
        while later:
            part = later[-1]
            if not part.is_loose:
                part = WaitingPart(part.messages().copy())
                later[-1] = part
            messages = part.messages()
            if messages:
                return messages
            later.pop()
        self._forget_parts()
        return None

    def _join(self) -> None:
        """Take all parts apart, however many messages they have."""
        for part in self._later:
            self._messages.extend(part.messages())
        self._forget_parts()

    def _forget_parts(self) -> None:
        self._later = _NO_PARTS
        self._has_parts = False

    def put_first(self, message: Message) -> None:
        """Put *message* first."""
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
        """Remove and return the first message; there must be one."""
        if self._has_parts and not self._messages:
            self._refill()
        message = self._messages.popleft()
        while message.marks & MARK_GONE:
            self._tombstones -= 1
            if self._has_parts and not self._messages:
                self._refill()
            message = self._messages.popleft()
        self.count -= 1
        if message.rare is not None:
            self._stop_expiry(message)
        return message

    def messages(self) -> list[Message]:
        """The waiting messages, in order."""
        found = [each for each in self._messages if not each.marks & MARK_GONE]
        for part in self._later:
            found += [each for each in part.messages() if not each.marks & MARK_GONE]
        return found

    def snapshot(self) -> list[WaitingPart]:
        """A copy of everything at this moment, with tombstones."""
        found = [WaitingPart(list(self._messages))]
        for part in self._later:
            part.complete()
            found.append(WaitingPart(part.messages().copy()) if part.is_loose else part)
        return found

    def take_newest(self) -> Message:
        """Remove and return the last message; there must be one."""
        message = self._pop()
        while message.marks & MARK_GONE:
            self._tombstones -= 1
            message = self._pop()
        self.count -= 1
        if message.rare is not None:
            self._stop_expiry(message)
        return message

    def _pop(self) -> Message:
        part = self._last_part() if self._has_parts else None
        return self._messages.pop() if part is None else part.pop()

    def take_oldest(self) -> Message:
        """Remove and return the message that has waited longest; there must be one."""
        return self.take()

    def look(self, newest: bool) -> Message:
        """The first message, or the last; there must be one."""
        if newest:
            message = self._pop()
            while message.marks & MARK_GONE:
                self._tombstones -= 1
                message = self._pop()
            if self._has_parts:
                self._put_behind_parts(message)
            else:
                self._messages.append(message)
            return message
        if self._has_parts and not self._messages:
            self._refill()
        while self._messages[0].marks & MARK_GONE:
            self._tombstones -= 1
            self._messages.popleft()
            if self._has_parts and not self._messages:
                self._refill()
        return self._messages[0]

    def next_expiry(self) -> float:
        """When the next message expires, or NEVER."""
        wheel = self._wheel
        return NEVER if wheel is None else wheel.next_due()

    def take_expired(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* messages that have expired.  The caller must settle each."""
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
        if self._has_too_many_tombstones():
            self._drop_tombstones()

    def _has_too_many_tombstones(self) -> bool:
        return self._tombstones > _TOLERATED_TOMBSTONES and self._tombstones > self.count

    def _drop_tombstones(self) -> None:
        messages = self._messages
        self._messages = deque([each for each in messages if not each.marks & MARK_GONE])
        self._tombstones -= len(messages) - len(self._messages)
        if self._has_parts:
            later: deque[WaitingPart] = deque()
            for part in self._later:
                made = part.made
                if made is None:
                    later.append(part)  # nothing of it has been settled yet
                    continue
                living = [each for each in made if not each.marks & MARK_GONE]
                self._tombstones -= len(made) - len(living)
                later.append(WaitingPart(living))
            self._later = later

    def holds(self, message: Message) -> bool:
        """Whether a message waits here; searches the whole list."""
        if message.marks & MARK_GONE:
            return False
        if message in self._messages:
            return True
        for part in self._later:  # noqa: SIM110 - any() would make a generator
            if part.made is not None and message in part.made:
                return True
        return False

    def remove(self, message: Message) -> None:
        """Make *message*, which is in this list, a tombstone.  The caller must settle it."""
        self.count -= 1
        self._tombstones += 1
        self._stop_expiry(message)

    def keep(self) -> None:
        """Count one of the messages of ``take_expired`` as waiting again, at its position."""
        self.count += 1
        self._tombstones -= 1

    def take_failed(self) -> list[Message]:
        """Remove all tombstones and all messages that could not be saved; return the latter."""
        if self._has_parts:
            self._join()
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
        """The waiting messages that have been sent or put back before."""
        found = [each for each in self._messages if each.attempts or each.put_backs]
        for part in self._later:
            found += [each for each in part.made or () if each.attempts or each.put_backs]
        return found

    def detach_parts(self) -> deque[WaitingPart]:
        """Remove and return all parts at once; ``detach`` must follow for the rest."""
        later = self._later
        self._forget_parts()
        return later

    def detach(self) -> list[deque[Message]]:
        """Remove and return everything at once, tombstones included, in constant time."""
        messages = self._messages
        self._messages = deque()
        self._wheel = None
        self._tombstones = 0
        self.count = 0
        return [messages]
