"""Publications that wait for their answers, and the messages of each.

One PUB, DPUB or MPUB, or consecutive PUBs together, are one publication; its messages may be
confirmed together or one by one.
"""

from __future__ import annotations

from typing import final

from tmqp_server.doors.ordered import Slot

__all__ = ["PendingPublication", "PendingPublications"]


@final
class PendingPublication:
    """Messages whose answer has one place in the order of answers.

    ``each`` asks for an OK for each message, for several PUBs; else there is one OK for all.
    ``order`` is the publication's number in its connection.
    """

    __slots__ = ("each", "ids", "left", "order", "remaining", "slot", "topic", "word")

    def __init__(
        self, word: bytes, topic: bytes, ids: list[str], each: bool, slot: Slot, order: int
    ) -> None:
        self.word = word
        self.topic = topic
        self.ids = ids
        self.each = each
        self.slot = slot
        self.order = order
        self.left = len(ids)
        self.remaining: set[str] | None = None


@final
class PendingPublications:
    """The unanswered publications of one connection, by the ids of their messages."""

    __slots__ = ("_ones", "_runs", "count")

    def __init__(self) -> None:
        self._ones: dict[str, PendingPublication] = {}
        #: By the id of the first message.
        self._runs: dict[str, PendingPublication] = {}
        #: How many are not answered.
        self.count: int = 0

    def add(self, publication: PendingPublication) -> None:
        """Add a publication that was forwarded to the broker."""
        self.count += 1
        ids = publication.ids
        if len(ids) == 1:
            self._ones[ids[0]] = publication
        else:
            self._runs[ids[0]] = publication

    def find(self, message_id: str) -> PendingPublication | None:
        """The publication that waits for this message; None if there is none."""
        found = self._ones.get(message_id)
        if found is not None:
            return found
        for run in self._runs.values():
            if run.remaining is None:
                run.remaining = set(run.ids)
            if message_id in run.remaining:
                return run
        return None

    def whole(self, message_ids: list[str]) -> PendingPublication | None:
        """The publication that consists of exactly these messages; None if there is none."""
        found = self._runs.get(message_ids[0])
        if found is None or found.left != len(message_ids) or found.left != len(found.ids):
            return None
        return found

    def take(self, publication: PendingPublication, message_id: str) -> None:
        """Note that a message was answered; remove the publication after its last message."""
        publication.left -= 1
        if publication.remaining is not None:
            publication.remaining.discard(message_id)
        if publication.left == 0:
            self.remove(publication)

    def remove(self, publication: PendingPublication) -> None:
        """Remove a publication that was answered."""
        first = publication.ids[0]
        if len(publication.ids) == 1:
            del self._ones[first]
        else:
            del self._runs[first]
        self.count -= 1

    def clear(self) -> None:
        """Remove all publications."""
        self._ones.clear()
        self._runs.clear()
        self.count = 0
