"""Operators who come by HTTP: they turn the pages of lists, and cut off clients of their own."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from urllib.parse import quote

from tmqp_server.admin.api.consuming import HttpConsumers
from tmqp_server.admin.api.logins import WebLogIns
from tmqp_server.admin.api.manner import ApiManner
from tmqp_server.admin.api.operations import routes_of
from tmqp_server.admin.api.overview import Overviews
from tmqp_server.admin.api.pace import Pace
from tmqp_server.admin.api.recalling import KeptEvents
from tmqp_server.admin.api.table import Api
from tmqp_server.admin.api.views import Views
from tmqp_server.admin.options import AdminOptions
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.door import HttpDoor, queue_routes
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import Door, IdSource
from tmqp_sim.stage import Stage
from tmqp_sim.web import WEB_LIMITS, HttpLine, open_line
from tmqp_sim.world import Violation

__all__ = ["Overseer", "api_of", "web_door"]

_PAUSE_S: Final = 0.4
_PATIENCE_S: Final = 2.0
#: Seconds in which a client that was disconnected must notice it.
_CUT_S: Final = 2.5
_API: Final = "/api/v1"
#: What tells that the server ends or has too much to do, that a list was kept for too long, or that
#: the request came too slowly.
_PASSING: Final = (408, 410, 503)


def api_of(world: AdminWorld, manner: ApiManner, logins: WebLogIns) -> Api:
    """What the operations of a door work with."""
    options = AdminOptions()
    return Api(
        world,
        manner,
        logins,
        Views(),
        bytes,
        Overviews(world),
        HttpConsumers(world),
        options,
        Pace(options.requests_per_s),
        KeptEvents(world),
    )


def web_door(world: AdminWorld, new_id: IdSource, letters: Letters, inner: Door) -> HttpDoor:
    """The door of HTTP with queues, and with the API for operators.

    :param world: what the API knows of the server; its ``turn`` has to be there when it begins.
    :param inner: the door of those who speak TMQP through a WebSocket.
    """
    api = api_of(world, ApiManner(WebLogIns(bytes), new_id, ("sim",)), WebLogIns(bytes))
    queues = queue_routes()
    known = {(each.method, each.template) for each in queues}
    more = [each for each in routes_of(api) if (each.method, each.template) not in known]
    return HttpDoor(
        new_id, WEB_LIMITS, inner={"tmqp": inner}, routes=[*queues, *more], letters=letters
    )


class Overseer:
    """Looks at all queues and clients, page by page."""

    def __init__(self, simulation: Stage, name: str) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.retired = False
        self._random = self.world.child(name)
        self._line: HttpLine | None = None
        #: A connection of its own that it disconnects, and the client's id there.
        self._other: HttpLine | None = None
        self._other_id = ""
        self._seen: list[Any] = []
        #: What was there when the list was begun.
        self._there: set[tuple[str, int]] = set()

    # -- its connections ------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the connection, and look around from time to time."""
        if self.retired or self._line is not None:
            return
        self._line = open_line(self.simulation, self.name, self._gone)
        self.world.mark("operator came by HTTP")
        self.world.after(_PAUSE_S, self._work, self._line)

    def _gone(self) -> None:
        self._line = None
        self.world.after(0.1 + self._random.random(), self.connect)

    def _other_gone(self) -> None:
        self._other = None
        self._other_id = ""

    def retire(self) -> None:
        """Come back no more."""
        self.retired = True
        for line in (self._line, self._other):
            if line is not None:
                line.cut("the operator is gone")

    def _alive(self, line: HttpLine) -> bool:
        return line is self._line and line.end is not None

    # -- its work -------------------------------------------------------------------------------

    def _work(self, line: HttpLine) -> None:
        if not self._alive(line):
            return
        if not line.asked:
            choice = self._random.randrange(3)
            if choice == 0:
                self._begin_queues(line)
            elif choice == 1:
                self._seen = []
                self._page(line, "clients", "limit=5&sort=-online_ms", self._judge_clients)
            else:
                self._disconnect(line)
        self.world.after(_PAUSE_S, self._work, line)

    def _ask(self, line: HttpLine, target: str, hear: Any, method: str = "GET") -> None:
        def heard(status: int, body: Any) -> None:
            if status in _PASSING:
                return
            hear(status, body)

        line.ask(_API + target, None, target, heard, _PATIENCE_S, method)

    def _begin_queues(self, line: HttpLine) -> None:
        self._seen = []
        self._there = self._queues()
        order = self._random.choice(("-waiting", "name,queue", "-in_flight,-name"))
        self._page(line, "queues", f"limit=4&sort={order}", self._judge_queues)

    def _queues(self) -> set[tuple[str, int]]:
        """The queues that are there, of those that nobody removes."""
        queues = self.simulation.broker.queues()
        there = {(queue.channel_name, queue.queue_id) for queue in queues}
        return {key for key, place in self.simulation.places.items() if not place.fleeting} & there

    def _page(self, line: HttpLine, what: str, query: str, judge: Any) -> None:
        def hear(status: int, body: Any) -> None:
            if status != 200:
                raise Violation("API", f"{self.name}: {status} answers a list of {what}: {body}")
            self._seen += body["items"]
            if body["next"] is None:
                judge()
                self.world.mark("operator saw the last page")
            elif self._alive(line):
                self._page(line, what, f"limit=4&after={body['next']}", judge)

        self._ask(line, f"/{what}?{query}", hear)

    def _judge_queues(self) -> None:
        found = [(each["channel"], each["queue"]) for each in self._seen]
        if len(found) != len(set(found)):
            raise Violation("API", f"{self.name}: a queue is in a list twice: {sorted(found)}")
        missing = (self._there & self._queues()) - set(found)
        if missing:
            raise Violation("API", f"{self.name}: {sorted(missing)} are in no page of the list")

    def _judge_clients(self) -> None:
        found = [each["id"] for each in self._seen]
        if len(found) != len(set(found)):
            raise Violation("API", f"{self.name}: a client is in a list twice: {sorted(found)}")

    # -- a client that it disconnects -----------------------------------------------------------

    def _disconnect(self, line: HttpLine) -> None:
        """Connect another client, look at it, and cut it off."""
        if self._other is None:
            self._other = other = open_line(self.simulation, self.name, self._other_gone)
            self._ask(other, "/session", self._met)
        elif self._other_id:
            self._ask(
                line,
                f"/clients/{quote(self._other_id)}",
                partial(self._described, self._other_id),
            )

    def _met(self, status: int, body: Any) -> None:
        if status == 200:
            self._other_id = body["client"]

    def _described(self, wanted: str, status: int, body: Any) -> None:
        line = self._line
        if status == 404 or line is None or wanted != self._other_id:
            return  # it has just gone
        if status != 200 or body["id"] != wanted:
            raise Violation("API", f"{self.name}: {status} {body} describes {wanted}")
        self._ask(line, f"/clients/{quote(wanted)}", self._cut, "DELETE")

    def _cut(self, status: int, body: Any) -> None:
        if status == 404:
            return
        if status != 204:
            raise Violation("API", f"{self.name}: {status} answers a disconnect: {body}")
        self.world.mark("operator disconnected a client")
        other = self._other
        if other is not None:
            self.world.after(_CUT_S, self._check_cut, other, self.simulation.server.lives)

    def _check_cut(self, other: HttpLine, life: int) -> None:
        server = self.simulation.server
        if other is not self._other or life != server.lives or not server.up:
            return
        if any(each.host == other.link.host for each in server.sessions.values()):
            raise Violation("API", f"{self.name}: {other.link.host} was disconnected and is there")
