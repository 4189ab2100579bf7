"""How many requests of operators work at the same time; the others wait in a bounded line."""

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

    :param most: how many requests work at the same time.
    :param most_waiting: how many requests wait for a place; further ones are refused.
    :param share: the time that the requests may take.
    :param wake: makes the hub look again at the deadline of a session.

    Attributes: ``at_work``, each request with a place, and whether it was admitted or has paused;
    ``line``, the waiting requests in order; ``refused``, how many were refused.
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
        """Return whether a request may begin: it has a place, and the share allows it.  A request
        that has already paused begins: to check it again and again would also take time.

        :raises BadRequest: 503 when the line is full.
        """
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
        """Give the request's place to the first one in the line."""
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
        """Free the places of a session that has ended, in whatever way."""
        for each in [*self.line, *self.at_work]:
            if each.client.number == number:
                self.left(each)

    def resumes(self, now: float) -> float:
        """When a request with a place may continue."""
        return self.share.resumes(now)
