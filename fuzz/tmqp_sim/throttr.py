"""Clients that speak Throttr: each keeps keys of its own, and all of them talk on one channel.

A client knows what its keys hold: nobody else changes them, and replies come in the order of
requests, so each reply must be what its copy of the keys says, whatever befalls connections and
server.  Behind a loss of its connection it takes other keys, and removes those it had: a server
that was suspended may carry out what the last connection asked for behind that (seed 4475).
What is published arrives once at most on a connection, and in its publisher's order.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Final, Protocol

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.throttr.door import ThrottrDoor
from tmqp_server.doors.throttr.options import ThrottrLimits, ThrottrOptions
from tmqp_sim.disk import EPOCH_S, Disk
from tmqp_sim.host import THROTTR
from tmqp_sim.plan import Plan
from tmqp_sim.side import Side
from tmqp_sim.speakers import Speaker
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation
from tmqp_wires.throttr import ClientConnection, Push, Reply, Request, words

__all__ = ["ThrottrClient", "ThrottrSide"]

_CHANNEL: Final = b"throttr-Sim"
_KEYS: Final = 4
#: Longer than any run: such a key ends by nobody's clock.
_AGES_H: Final = 9
#: How long the key lives that ends by itself.
_SHORT_S: Final = 2
_WINDOW: Final = 12
_EVERY_S: Final = 0.2
_PATIENCE_S: Final = 8.0
_INEXACT: Final = "clock"
_MAKING: Final = (words.INSERT, words.SET)


class ThrottrClient(Speaker):
    """One client; it comes back until the run is over.

    :param exact: clocks are not disturbed, so a key that ends by itself does so in time.
    """

    def __init__(
        self, simulation: Stage, name: str, dialect: str, restless: float, *, exact: bool
    ) -> None:
        super().__init__(simulation, name, THROTTR, "Throttr")
        self._exact = exact
        self._dialect = dialect
        self._restless = restless
        self._wire = ClientConnection(dialect, 2)
        self._keys: list[bytes] = []
        self._short = b""
        #: What each key holds, as far as replies tell.
        self._known: dict[bytes, int | bytes] = {}
        #: Since when, at the latest, the key is there that ends by itself.
        self._short_since = -1.0
        self._asked: deque[tuple[Request, float]] = deque()
        self._published = 0
        #: The last number that came of each publisher, on this connection.
        self._got: dict[bytes, int] = {}
        self._synced = False

    @property
    def owes(self) -> int:
        """Requests without a reply, but for signs of life, and one for who is not connected."""
        waiting = sum(request.code != words.WHOAMI for request, _ in self._asked)
        return waiting + (self.end is None or self.end.link.dead or not self._synced)

    # -- its life -------------------------------------------------------------------------------

    def begins(self) -> None:
        """Begin with no keys."""
        self._wire = ClientConnection(self._dialect, 2)
        self._known.clear()
        self._short_since = -1.0
        self._got.clear()
        self._synced = False
        self.world.mark("Throttr client connected")

    def greets(self) -> None:
        """Remove the keys that the last connection had, and subscribe."""
        for key in filter(None, (*self._keys, self._short)):
            self._ask(Request(words.PURGE, key))
        self._keys = [f"{self.name}-{self.connection}-{n}".encode() for n in range(_KEYS)]
        self._short = f"{self.name}-{self.connection}-short".encode()
        self._ask(Request(words.SUBSCRIBE, _CHANNEL))
        self._ask(Request(words.WHOAMI))
        self._work_later()

    def _work_later(self) -> None:
        self.later(_EVERY_S * (0.5 + self.random.random()), self._work)

    def _work(self) -> None:
        self._work_later()
        if self._asked and self.world.now - self.heard_at > _PATIENCE_S:
            self.world.mark("Throttr client gave the server up")
            self.leave(silently=False)
        elif self.simulation.healed:
            if not self._asked:
                self._ask(Request(words.WHOAMI))  # the peer of a half-open connection finds out
        elif self.random.random() < self._restless * _EVERY_S:
            self.leave(silently=self.random.random() < 0.4)
        elif self._synced:
            for _ in range(self.random.randint(1, 5)):
                if len(self._asked) < _WINDOW:
                    self._ask(self._draw())

    def lost(self) -> None:
        """Nobody answers any more."""
        self._asked.clear()

    # -- requests -------------------------------------------------------------------------------

    def _draw(self) -> Request:
        draw = self.random
        key = draw.choice(self._keys)
        code = draw.choice(
            (words.INSERT, words.SET, words.UPDATE, words.UPDATE, words.QUERY, words.GET,
             words.PURGE, words.PUBLISH, words.PUBLISH, words.LIST, words.STAT)
        )  # fmt: skip
        if draw.random() < 0.15:
            if draw.random() < 0.5:
                return Request(words.INSERT, self._short, b"", 1, words.TTL_SECONDS, _SHORT_S)
            return Request(words.QUERY, self._short)
        if code == words.INSERT:
            return Request(code, key, b"", draw.randrange(65_536), words.TTL_HOURS, _AGES_H)
        if code == words.SET:
            data = bytes(draw.randrange(256) for _ in range(draw.randrange(40)))
            return Request(code, key, data, 0, words.TTL_HOURS, _AGES_H)
        if code == words.UPDATE:
            return Request(code, key, b"", draw.randrange(40_000), 0, 0, 0, draw.randrange(3))
        if code == words.PUBLISH:
            self._published += 1
            return Request(
                code, _CHANNEL, f"{self.name}-{self.connection} {self._published}".encode()
            )
        if code == words.LIST:
            return Request(code)
        return Request(code, key)

    def _ask(self, request: Request) -> None:
        self.unsent += self._wire.send(request)
        self._asked.append((request, self.world.now))
        self.flush()

    def hears(self, data: bytes) -> None:
        """Compare replies with what they must be."""
        try:
            heard = self._wire.receive(data)
        except ValueError as error:
            raise Violation("throttr", f"{self.name}: {error}") from error
        for each in heard:
            if isinstance(each, Push):
                self._take(each)
            else:
                self._answered(*self._asked.popleft(), each)

    def _take(self, push: Push) -> None:
        publisher, _, number = push.payload.rpartition(b" ")
        if push.channel == b"*":
            return
        if int(number) <= self._got.get(publisher, 0):
            raise Violation("throttr", f"{self.name} gets {push.payload!r} again, or too late")
        self._got[publisher] = int(number)
        self.world.mark("message of Throttr taken")

    # -- what replies must be -------------------------------------------------------------------

    def _answered(self, request: Request, asked_at: float, reply: Reply) -> None:
        code, key = request.code, request.key
        if code == words.WHOAMI:
            self._synced = True
            return
        if code in (words.PUBLISH, words.SUBSCRIBE):
            return
        if code == words.LIST:
            self._check_list(reply)
        elif key == self._short:
            self._check_short(request, asked_at, reply)
        elif not self._synced:
            self._known.pop(key, None)
        elif code in _MAKING and not reply.ok and key not in self._known:
            self.world.mark("Throttr client refused")
        else:
            expected = self._expected(request)
            told: tuple[object, ...] = (reply.ok,)
            if reply.ok and code == words.QUERY:
                told = (True, reply.amount)
            elif reply.ok and code == words.GET:
                told = (True, reply.value)
            if told != expected:
                text = f"{self.name}: {request!r} is answered {told!r}, not {expected!r}"
                raise Violation("throttr", text)
            self.world.mark("reply of Throttr is right")

    def _expected(self, request: Request) -> tuple[object, ...]:
        """What a request must be answered; the copy of the keys is changed as it says."""
        code, key = request.code, request.key
        known = self._known.get(key)
        if code == words.INSERT:
            self._known.setdefault(key, request.amount)
            return (known is None,)
        if code == words.SET:
            if isinstance(known, int):
                return (False,)
            self._known[key] = request.value
            return (True,)
        if known is None:
            return (False,)
        if code == words.PURGE:
            del self._known[key]
            return (True,)
        if code == words.STAT:
            return (True,)
        if code in (words.QUERY, words.GET):
            is_counter = isinstance(known, int)
            return (True, known) if is_counter == (code == words.QUERY) else (False,)
        if not isinstance(known, int):
            return (False,)
        total = (request.amount, known + request.amount, known - request.amount)[request.change]
        if total < 0:
            return (False,)
        self._known[key] = total % 65_536
        return (True,)

    def _check_list(self, reply: Reply) -> None:
        there = {item.name for item in reply.items}
        mine = {name for name in there if name in self._keys}
        if self._synced and mine != set(self._known):
            text = f"{self.name}: LIST has {sorted(mine)}, not {sorted(self._known)}"
            raise Violation("throttr", text)

    def _check_short(self, request: Request, asked_at: float, reply: Reply) -> None:
        """A key that ends by itself is not there when its time is over since it was made."""
        if request.code == words.INSERT and reply.ok:
            self._short_since = self.world.now
        elif request.code == words.QUERY and reply.ok and self._synced and self._exact:
            late = 0 <= self._short_since < asked_at - _SHORT_S
            if late:
                raise Violation("throttr", f"{self.name}: a key of {_SHORT_S} s is still there")
            self.world.mark("key of Throttr is there in time")


class _Run(Stage, Protocol):
    """One run, with its disk."""

    disk: Disk


class ThrottrSide(Side):
    """The clients of Throttr of one run, and the door of each life."""

    host = THROTTR

    def __init__(self, simulation: _Run, plan: Plan) -> None:
        self._simulation = simulation
        self._ids = simulation.world.child("throttr ids")
        own = Random(f"{plan.seed}/throttr side")
        self._dialect = own.choice(words.DIALECTS)
        exact = all(fault.kind != _INEXACT for fault in plan.faults)
        restless = 0.0 if plan.quiet else own.choice((0.0, 0.1, 0.3))
        self.clients = [
            ThrottrClient(simulation, f"throttr-{n}", self._dialect, restless, exact=exact)
            for n in range(plan.throttr)
        ]
        for client in self.clients:
            simulation.world.at(own.random() * 0.5, client.connect)

    def door(self, letters: Letters) -> ThrottrDoor:
        """The door of a life that begins."""
        options = ThrottrOptions(dialect=self._dialect)
        limits = ThrottrLimits(max_unanswered=self._ids.choice((16, 256)))
        offset_s = EPOCH_S + self._simulation.server.booted_at
        door = ThrottrDoor(self._new_id, limits, options, letters, None, offset_s)
        letters.add(door)
        return door

    def _new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        return {client.name: client.owes for client in self.clients}
