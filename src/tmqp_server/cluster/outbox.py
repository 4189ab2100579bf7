"""The messages that wait for one master: limited in bytes; the oldest are dropped first.

Theory of operation.  A message waits, is *taken* by the writer, and is removed when it was written
as a whole.  When a connection breaks, taken messages that were not written return to the front: so
a whole message is written at most once, and a partly written one is written again.  A message that
the kernel has accepted and the network loses is lost, because forwarded messages are not
acknowledged.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Outbox"]


class Outbox:
    """Messages for one master.

    :param most_bytes: how many bytes may wait; a larger message is dropped at once.

    Attributes to read: ``waiting_bytes``; ``written`` and ``dropped``, the numbers of messages.
    """

    __slots__ = (
        "_half",
        "_most_bytes",
        "_taken",
        "_waiting",
        "dropped",
        "waiting_bytes",
        "written",
    )

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: deque[bytes] = deque()
        self._taken: deque[bytes] = deque()
        #: Bytes written of the first message taken.
        self._half = 0
        self.waiting_bytes = 0
        self.written = 0
        self.dropped = 0

    def __len__(self) -> int:
        """How many messages wait or are being written."""
        return len(self._waiting) + len(self._taken)

    def put(self, message: bytes) -> None:
        """Add a message; older ones are dropped to make room."""
        size = len(message)
        if size > self._most_bytes:
            self.dropped += 1
            return
        self._waiting.append(message)
        self.waiting_bytes += size
        self._make_room()

    def _make_room(self) -> None:
        waiting = self._waiting
        while self.waiting_bytes > self._most_bytes and waiting:
            self.waiting_bytes -= len(waiting.popleft())
            self.dropped += 1

    def take(self, about_bytes: int) -> bytes:
        """Take messages to be written now: at least one, and more while they fit.

        Take no more before all that was taken has been written.
        """
        waiting = self._waiting
        if self._taken or not waiting:
            return b""
        size = 0
        while waiting and (not size or size + len(waiting[0]) <= about_bytes):
            message = waiting.popleft()
            size += len(message)
            self._taken.append(message)
        self.waiting_bytes -= size
        return b"".join(self._taken)

    def note_written(self, count: int) -> None:
        """Note how many of the taken bytes have been written."""
        taken = self._taken
        count += self._half
        while taken and count >= len(taken[0]):
            count -= len(taken.popleft())
            self.written += 1
        self._half = count
        assert taken or not count, "no more is written than was taken"

    def give_back(self) -> None:
        """Return partly written messages to the front, because the connection has ended."""
        while self._taken:
            message = self._taken.pop()
            self._waiting.appendleft(message)
            self.waiting_bytes += len(message)
        self._half = 0
        self._make_room()
