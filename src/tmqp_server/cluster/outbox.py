"""What waits for one master: whole messages, bounded in bytes, the oldest given up first.

Theory of operation.  A message waits, is *taken* by whoever writes, and is forgotten when it was
written as a whole.  What was taken and not written when a connection breaks goes back to the front;
so a message is written whole at most once, and a torn one is written again.  A message that the
system had accepted and the network lost is lost: nobody acknowledges what is passed on.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Outbox"]


class Outbox:
    """Messages for one master.

    :param most_bytes: what may wait; a message that is larger by itself is given up at once.

    Attributes to read: ``waiting_bytes``; ``written`` and ``dropped``, how many messages were
    written, and given up.
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
        """Messages that wait or are being written."""
        return len(self._waiting) + len(self._taken)

    def put(self, message: bytes) -> None:
        """Let a message wait; older ones make room for it."""
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
        """Take out messages to be written now: at least one, more while they fit.

        Nothing more is taken before all that was has been written.
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
        """So many bytes of what was taken have been written."""
        taken = self._taken
        count += self._half
        while taken and count >= len(taken[0]):
            count -= len(taken.popleft())
            self.written += 1
        self._half = count
        assert taken or not count, "no more is written than was taken"

    def give_back(self) -> None:
        """The connection broke: what was not written as a whole waits again, in front."""
        while self._taken:
            message = self._taken.pop()
            self._waiting.appendleft(message)
            self.waiting_bytes += len(message)
        self._half = 0
        self._make_room()
