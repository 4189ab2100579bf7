"""The part of a run that speaks goMS: its clients, and the door of each life."""

from __future__ import annotations

from random import Random

from tmqp_server.doors.goms.door import GomsDoor
from tmqp_server.doors.goms.options import GomsOptions
from tmqp_server.doors.letters import Letters
from tmqp_sim.goms import GomsClient
from tmqp_sim.goms_books import TOPICS, GomsBooks
from tmqp_sim.host import GOMS
from tmqp_sim.plan import Plan
from tmqp_sim.side import Side
from tmqp_sim.stage import Stage
from tmqp_wires.goms import Dialect

__all__ = ["GomsSide"]


class GomsSide(Side):
    """Clients of goMS, and what happened to their messages."""

    host = GOMS

    def __init__(self, simulation: Stage, plan: Plan) -> None:
        self._simulation = simulation
        self._ids = simulation.world.child("goms ids")
        own = Random(f"{plan.seed}/goms side")
        self.books = books = GomsBooks(simulation.world)
        books.streams.watches = simulation.watched
        room = own.choice((300, 2_000, 65_536))
        restless = 0.0 if plan.quiet else own.choice((0.0, 0.1, 0.3))
        dialects = list(Dialect)
        self._clients = [
            GomsClient(
                simulation, f"goms-{n}", books, own.choice(dialects), restless, room,
                own.choice((0.0, 0.0, 0.3, 1.0)), self._is_news_wanted,
            )
            for n in range(own.choice((1, 2, 4)))
        ]  # fmt: skip
        self._sender = GomsClient(
            simulation, "goms-sender", books, Dialect.MESSAGETYPE, restless, room, 0.0,
            self._is_news_wanted, registers=False,
        )  # fmt: skip
        world = simulation.world
        for client in (*self._clients, self._sender):
            world.at(own.random() * 0.5, client.connect)
        moments = [own.random() * plan.duration_s * 0.9 for _ in range(3)]
        bursts = own.random() < 0.6
        for number in range(plan.goms):
            at = own.choice(moments) if bursts else own.random() * plan.duration_s * 0.9
            client = own.choice((*self._clients, self._sender, self._sender))
            world.at(at, client.give, f"g{number}")

    def _is_news_wanted(self) -> bool:
        return any(each.is_waiting for each in self._clients)

    def watcher(self) -> GomsBooks:
        """What is owed to them."""
        return self.books

    def door(self, letters: Letters) -> GomsDoor:
        """The door of a life that begins."""
        door = GomsDoor(self._new_id, None, GomsOptions(topics=TOPICS), letters)
        letters.add(door)
        return door

    def _new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    def began(self) -> None:
        """A life of the server has begun."""
        self.books.began()

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        return {each.name: each.owes for each in (*self._clients, self._sender)}

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is missing.
        """
        skipped = 0
        for queue in self._simulation.broker.queues():
            if queue.channel_name.lower() in TOPICS:
                skipped += queue.counters.skipped + queue.counters.untracked
        living = [each.link.number for each in self._clients if each.synced]
        self.books.check_end(skipped, living)
