"""Who watches by HTTP: it reads the metrics again and again, and logs in and out as a browser does.

No sum may fall while the server lives, a queue that is gone is shown no more, and a page is made in
portions.  A session's cookie alone changes nothing: that takes what only a page of the server can
know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from tmqp_server.admin.api.logins import WebLogIns
from tmqp_server.admin.api.manner import ApiManner
from tmqp_server.admin.api.operations import routes_of
from tmqp_server.admin.metrics.collect import Collector
from tmqp_server.admin.metrics.serving import metrics_route
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.door import HttpDoor
from tmqp_server.doors.letters import Letters
from tmqp_server.engine.operations.survey import QueueChoice
from tmqp_sim.host import WATCH
from tmqp_sim.overseers import api_of
from tmqp_sim.plan import Plan
from tmqp_sim.side import Side
from tmqp_sim.stage import Stage
from tmqp_sim.web import HttpLine, open_line
from tmqp_sim.world import Violation, World

__all__ = ["WatchingSide"]

_PAUSE_S: Final = 0.4
_PATIENCE_S: Final = 2.0
#: What a queue that was removed may still be shown for: as long as a page is shared.
_SHARED_S: Final = 1.0
_SESSION: Final = "/api/v1/session"
#: A client that may not do that, a limit, or a server that ends or has too much to do.
_PASSING: Final = (401, 403, 409, 503)
#: A sample of a counter, or of the counts of a histogram; those of single queues begin again with
#: their queue.
_COUNT: Final = re.compile(
    r"^(tmqp_(?!queue_)[a-z_]+_(?:total|count|bucket)(?:\{[^ ]*\})?) ([0-9.]+)$", re.MULTILINE
)
#: Characters of a page that may be made in one event of the world: a portion for each of several
#: connections.
_MOST_CHARACTERS: Final = 25_000


def _metered(steps: Iterator[str], world: World) -> Iterator[str]:
    """The pieces of a page.

    :raises Violation: when nobody else has had a turn between too many of them.
    """
    event, size = -1, 0
    for piece in steps:
        if world.events != event:
            event, size = world.events, 0
        size += len(piece)
        if size > _MOST_CHARACTERS:
            raise Violation("metrics", f"{size} characters of a page are made in one step")
        yield piece


class Scraper:
    """One of them.

    :param makes: it makes and removes a queue of its own.
    """

    def __init__(self, simulation: Stage, name: str, *, makes: bool) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self._random = self.world.child(name)
        self._makes = makes
        self._line: HttpLine | None = None
        self._life = 0
        #: What the page before has said, by sample.
        self._counts: dict[str, float] = {}
        #: It has made its queue; when that was removed, below 0 while it may be there.
        self._is_made = False
        self._removed_at = -1.0

    # -- its connection -------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the connection, and look at the server from time to time."""
        if self._line is not None:
            return
        self._line = open_line(self.simulation, self.name, self._gone, host=WATCH)
        self.world.mark("metrics are watched")
        self.world.after(_PAUSE_S, self._work, self._line)

    def _gone(self) -> None:
        self._line = None
        self.world.after(0.1 + self._random.random(), self.connect)

    # -- its work -------------------------------------------------------------------------------

    def _work(self, line: HttpLine) -> None:
        if line is not self._line or line.end is None:
            return
        if self._life != line.link.life:
            self._life = line.link.life
            self._counts.clear()
            self._is_made = False
            self._removed_at = -1.0
        if not line.asked:
            choice = self._random.randrange(4 if self._makes else 3)
            if choice == 3:
                self._make_or_remove(line)
            elif choice == 2:
                self._log_in(line)
            else:
                asked_at = self.world.now
                line.ask("/metrics", None, None, partial(self._read, line, asked_at), _PATIENCE_S)
        self.world.after(_PAUSE_S, self._work, line)

    def _read(self, line: HttpLine, asked_at: float, status: int, _body: Any) -> None:
        """A page has come.

        :raises Violation: when a sum has fallen, or a queue is shown that is gone.
        """
        if status in _PASSING:
            return
        if status != 200:
            raise Violation("metrics", f"{self.name}: {status} answers who asks for metrics")
        self.world.mark("page of metrics read")
        for name, text in _COUNT.findall(line.text):
            before = self._counts.get(name, 0.0)
            self._counts[name] = float(text)
            if float(text) < before:
                raise Violation("metrics", f"{self.name}: {name} was {before:g} and is {text}")
        gone = 0.0 <= self._removed_at < asked_at - _SHARED_S
        if gone and f'channel="{self.name}"' in line.text:
            raise Violation("metrics", f"{self.name}: a queue is shown that was removed")

    def _make_or_remove(self, line: HttpLine) -> None:
        """Make a queue of its own, or remove it with its channel."""
        channel = f"/api/v1/channels/{self.name}"

        def made(status: int, _body: Any) -> None:
            self._is_made = status in (200, 201)

        def removed(status: int, _body: Any) -> None:
            if status == 204:
                self._is_made = False
                self._removed_at = self.world.now
                self.world.mark("queue removed that metrics have shown")

        self._removed_at = -1.0
        if self._is_made:
            line.ask(channel, None, None, removed, _PATIENCE_S, "DELETE")
        else:
            line.ask(f"{channel}/queues/1", b"{}", None, made, _PATIENCE_S, "PUT")

    # -- as a browser does ----------------------------------------------------------------------

    def _log_in(self, line: HttpLine) -> None:
        def logged_in(status: int, body: Any) -> None:
            if status in _PASSING:
                return
            if status != 201 or not line.cookie:
                raise Violation("API", f"{self.name}: {status} answers a log-in: {body}")
            self._log_out(line, line.cookie, body["csrf"])

        line.ask(_SESSION, b'{"token": "sim"}', None, logged_in, _PATIENCE_S)

    def _log_out(self, line: HttpLine, cookie: str, csrf: str) -> None:
        """Log out as a page of somebody else would have it done, and then as one of the server."""
        bare = [("Cookie", cookie)]
        full = [*bare, ("X-Tmqp-Csrf", csrf)]
        last = partial(self._expect, line, full, "DELETE", 204, self._is_out)
        looks = partial(self._expect, line, bare, "", 200, last)
        self._expect(line, bare, "DELETE", 403, looks)

    def _is_out(self) -> None:
        self.world.mark("logged out with the proof of a page, and not without")

    def _expect(
        self,
        line: HttpLine,
        fields: list[tuple[str, str]],
        method: str,
        wanted: int,
        then: Callable[[], None],
    ) -> None:
        """Ask for the session, and continue if the answer is as it has to be."""

        def hear(status: int, body: Any) -> None:
            if status == wanted:
                then()
            elif status not in (401, 503) and not (status == 403 and wanted != 204):
                text = f"{status}, not {wanted}, answers {method or 'GET'} {_SESSION}: {body}"
                raise Violation("API", f"{self.name}: {text}")

        if line.end is not None:
            line.ask(_SESSION, None, None, hear, _PATIENCE_S, method, fields)


class WatchingSide(Side):
    """Those who watch, and their door: the API with the manner of the admin door, and metrics."""

    host = WATCH

    def __init__(self, simulation: Stage, plan: Plan) -> None:
        self._simulation = simulation
        self._overseen = AdminWorld()
        self._ids = simulation.world.child("watching")
        for number in range(plan.scrapers):
            scraper = Scraper(simulation, f"scraper-{number}", makes=not plan.is_narrow)
            simulation.world.at(self._ids.random(), scraper.connect)

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""
        self._overseen.turn = self._simulation.server.turn

    def door(self, letters: Letters) -> HttpDoor:
        """The door of a life that begins."""
        world = self._simulation.world
        self._overseen = AdminWorld()
        logins = WebLogIns(self._ids.randbytes)
        manner = ApiManner(logins, self._new_id, ("sim",))
        collector = Collector(self._overseen, [QueueChoice("*")], 1_000)
        steps = collector._steps
        collector._steps = (  # type: ignore[method-assign]
            lambda form, now: _metered(steps(form, now), world)
        )
        routes = routes_of(api_of(self._overseen, manner, logins))
        routes.append(metrics_route(collector, anonymous=False))
        return HttpDoor(self._new_id, routes=routes, letters=letters, manner=manner)

    def _new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"
