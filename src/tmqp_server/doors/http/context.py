"""What all sessions of one HTTP door share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from email.utils import formatdate
from typing import final

from tmqp_server.doors.http.bodies import DOOR_NAME
from tmqp_server.doors.http.entrance import Entrance
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.manner import Manner
from tmqp_server.doors.http.routes import Route, RouteTable
from tmqp_server.doors.http.tally import HttpTally
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import Door, IdSource

__all__ = ["HttpContext"]


@final
class HttpContext:
    """The context of a session; the parameters are those of ``HttpDoor``.

    :param manner: how requests are answered.
    :param entrance: says when requests may begin.
    :param door_name: the name of the door to which the messages of its clients belong.
    """

    __slots__ = (
        "_date",
        "_second",
        "entrance",
        "door_name",
        "inner",
        "letters",
        "limits",
        "manner",
        "new_id",
        "offset_s",
        "routes",
        "tally",
    )

    def __init__(
        self,
        new_id: IdSource,
        limits: HttpLimits,
        wall_clock_offset_s: float,
        inner: Mapping[str, Door],
        routes: Iterable[Route],
        letters: Letters,
        manner: Manner | None = None,
        door_name: str = DOOR_NAME,
        tally: HttpTally | None = None,
        entrance: Entrance | None = None,
    ) -> None:
        self.entrance = Entrance() if entrance is None else entrance
        self.manner = Manner() if manner is None else manner
        self.door_name = door_name
        self.letters = letters
        self.new_id = new_id
        self.limits = limits
        self.inner = dict(inner)
        self.routes = RouteTable(routes, answers_head=self.manner.answers_head)
        self.offset_s = wall_clock_offset_s
        self.tally = HttpTally() if tally is None else tally
        self._second = -1
        self._date = b""

    def date(self, now: float) -> bytes:
        """The value of the field Date at this time of the engine."""
        second = int(now + self.offset_s)
        if second != self._second:
            self._second = second
            self._date = formatdate(second, usegmt=True).encode("ascii")
        return self._date
