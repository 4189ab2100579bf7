"""Deliveries that are no longer in flight to this client, although it has not answered them.

The server reports them only if the client has requested that with a join.  A delivery is identified
by its time, because the same message may have been redelivered since.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import HeaderName
from tmqp.extensions import HEADER_REASON
from tmqp.frames import Frame

__all__ = ["Lapses"]

#: Lapses that are remembered; what lapsed before counts as if nothing had been told.
_MOST: Final = 10_000


class Lapses:
    """What the server has told.

    Attributes to read: ``count``, how much that was; what is returned notes it as its mark.
    """

    __slots__ = ("_lapses", "count")

    def __init__(self) -> None:
        self.count = 0
        #: By channel in lower case, queue and message: which lapse it was, and why.
        self._lapses: dict[tuple[str, int, str], tuple[int, str]] = {}

    def note(self, told: Frame) -> tuple[str, int, str]:
        """Take note of what the server says; returns which message it is about."""
        queue_id = told.header(HeaderName.QUEUE_ID) or ""
        key = (told.target.lower(), int(queue_id) if queue_id.isdecimal() else 0, told.message_id)
        self._lapses.pop(key, None)
        if len(self._lapses) >= _MOST:
            del self._lapses[next(iter(self._lapses))]
        self.count += 1
        self._lapses[key] = (self.count, told.header(HEADER_REASON) or "")
        return key

    def reason(self, message: Frame, mark: int) -> str:
        """Why a message that was returned at that mark is the client's no more; empty if it is.

        :param mark: what ``count`` was then.
        """
        if mark == self.count:
            return ""
        key = (message.target.lower(), message.content_type, message.message_id)
        number, reason = self._lapses.get(key, (0, ""))
        return reason if number > mark else ""
