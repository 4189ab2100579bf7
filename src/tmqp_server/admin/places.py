"""How many requests of operators work at once: the others wait in a line, which is bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, final

from tmqp_server.admin.share import LoopShare
from tmqp_server.doors.http.entrance import Entrance
from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.messages import BadRequest

__all__ = ["Places"]

_BUSY: Final = "the server works on too many requests of operators: come again later"


@final
class Places(Entrance):
    """The places of one door.

    :param most: requests that work at once.
    :param most_waiting: requests that wait for a place; further ones are refused.
    :param share: the time that they may take.
    :param wake: has the deadline of a session looked at again.

    Attributes: ``at_work``, and whether each was asked to pause; ``line``, the first in it first;
    ``refused``, how many were.
    """

    def __init__(
        self, most: int, most_waiting: int, share: LoopShare, wake: Callable[[int], None]
    ) -> None:
        self._most = most
        self._most_waiting = most_waiting
        self._wake = wake
        self.share = share
        self.at_work: dict[Exchange, bool] = {}
        self.line: dict[Exchange, None] = {}
        self.refused = 0

    def admit(self, exchange: Exchange, now: float) -> bool:
        """Whether a request has a place, and there is time to begin with it.  One that has paused
        begins: to look at it again and again would take time as well."""
        if exchange not in self.at_work:
            if len(self.at_work) >= self._most:
                self._join(exchange)
                return False
            self.at_work[exchange] = False
        if self.at_work[exchange]:
            return True
        self.at_work[exchange] = True
        resumes = self.share.resumes(now)
        if resumes > now:
            exchange.due = resumes
        return resumes <= now

    def _join(self, exchange: Exchange) -> None:
        if len(self.line) >= self._most_waiting:
            self.refused += 1
            raise BadRequest(503, _BUSY)
        self.line[exchange] = None
        exchange.due = math.inf

    def left(self, exchange: Exchange) -> None:
        """It gives its place to the first in the line."""
        self.line.pop(exchange, None)
        if exchange not in self.at_work:
            return
        del self.at_work[exchange]
        if self.line:
            first = next(iter(self.line))
            del self.line[first]
            self.at_work[first] = False
            first.due = first.now
            self._wake(first.client.number)

    def forget(self, number: int) -> None:
        """A session is gone, however it has ended."""
        for each in [*self.line, *self.at_work]:
            if each.client.number == number:
                self.left(each)

    def resumes(self, now: float) -> float:
        """When a request that is at work may continue."""
        return self.share.resumes(now)
