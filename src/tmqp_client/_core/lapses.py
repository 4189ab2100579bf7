"""Deliveries that are no longer in flight to this client, although it has not answered them.

The server reports them only if the client has requested that with a join.  Lapses are numbered, and
each message that the program gets notes the last number, because a lapse must not apply to a later
delivery of the same message.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import HeaderName
from tmqp.extensions import HEADER_REASON
from tmqp.frames import Frame

__all__ = ["Lapses"]

#: Lapses that are remembered; earlier ones are treated as if the server had not reported them.
_MOST: Final = 10_000


class Lapses:
    """The lapses that the server has reported.

    Attributes to read: ``count``, their number; a message notes it as its mark when the program
    gets it.
    """

    __slots__ = ("_lapses", "count")

    def __init__(self) -> None:
        self.count = 0
        #: By channel in lower case, queue and message: which lapse it was, and why.
        self._lapses: dict[tuple[str, int, str], tuple[int, str]] = {}

    def note(self, told: Frame) -> tuple[str, int, str]:
        """Note a lapse that the server reports; return the key of its message."""
        queue_id = told.header(HeaderName.QUEUE_ID) or ""
        key = (told.target.lower(), int(queue_id) if queue_id.isdecimal() else 0, told.message_id)
        self._lapses.pop(key, None)
        if len(self._lapses) >= _MOST:
            del self._lapses[next(iter(self._lapses))]
        self.count += 1
        self._lapses[key] = (self.count, told.header(HEADER_REASON) or "")
        return key

    def reason(self, message: Frame, mark: int) -> str:
        """Return why a message is no longer in flight to this client; empty if it is.

        :param mark: the value of ``count`` when the program got the message.
        """
        if mark == self.count:
            return ""
        key = (message.target.lower(), message.content_type, message.message_id)
        number, reason = self._lapses.get(key, (0, ""))
        return reason if number > mark else ""
