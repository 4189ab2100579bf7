"""The part of a run that speaks Simple MQ: its clients, their items, and the door of each life."""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

from tmqp.constants import STATUS_ROUND_ROBIN
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import exact_channel, foreign_name
from tmqp_server.doors.smq.door import SmqDoor
from tmqp_server.doors.smq.message import QUEUE
from tmqp_server.doors.smq.options import SmqLimits, SmqOptions
from tmqp_server.engine.commands import CreateQueue
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import QueueChanges
from tmqp_sim.host import SMQ
from tmqp_sim.operators import Operator
from tmqp_sim.plan import Plan
from tmqp_sim.side import Side
from tmqp_sim.smq import SmqConsumer, SmqProducer
from tmqp_sim.smq_books import QUEUES, Item, SmqBooks
from tmqp_sim.stage import Stage

__all__ = ["SmqSide"]

#: A fault behind which the disk may not have what it was given.
_UNSTEADY: Final = "disk-full"


class _Run(Stage, Protocol):
    """One run, with its operator."""

    operator: Operator


class SmqSide(Side):
    """Clients of Simple MQ, and what happened to their messages."""

    host = SMQ

    def __init__(self, simulation: _Run, plan: Plan) -> None:
        self._simulation = simulation
        self._ids = simulation.world.child("smq ids")
        own = Random(f"{plan.seed}/smq side")
        self._durable = plan.smq_durable
        self._room = own.choice((0, 3, 3))
        self._in_hand = own.choice((2, 10, 100_000, 100_000))
        #: Shorter than some faults last, and than some consumers work.
        self._wait_s = own.choice((0.3, 1.0, 60.0))
        kinds = {fault.kind for fault in plan.faults}
        steady = not plan.disk.fails and _UNSTEADY not in kinds
        self.books = books = SmqBooks(simulation.world, steady=steady)
        books.streams.watches = simulation.watched
        restless = 0.0 if plan.quiet else own.choice((0.0, 0.1, 0.3))
        room = own.choice((300, 2_000, 65_536))
        self._producers = [
            SmqProducer(simulation, f"smq-producer-{n}", books, restless, room)
            for n in range(own.choice((1, 2)))
        ]
        self._consumers: list[SmqConsumer] = []
        for number in range(own.choice((1, 2, 3))):
            queues = list(QUEUES)
            if number:  # the first one takes all
                queues = own.sample(queues, own.choice((1, 2)))
            self._consumers.append(
                SmqConsumer(
                    simulation, f"smq-consumer-{number}", books,
                    0.0 if plan.quiet else own.choice((0.0, 0.1, 0.4)), room,
                    own.choice((0.0, 0.3, 1.0)), queues, own.choice((0.0, 0.1, 1.0)),
                )
            )  # fmt: skip
        self._begin(plan, own)

    def _begin(self, plan: Plan, own: Random) -> None:
        """Let all of them come, and items come up; until somebody consumes, these wait."""
        world = self._simulation.world
        late_s = own.choice((0.5, 0.5, plan.duration_s * 0.9))
        for producer in self._producers:
            world.at(own.random() * 0.5, producer.connect)
        for consumer in self._consumers:
            world.at(own.random() * late_s, consumer.connect)
        most = own.choice((0, 30, 100))
        moments = [own.random() * plan.duration_s * 0.9 for _ in range(3)]
        bursts = own.random() < 0.6
        for number in range(plan.smq):
            uid = f"s{number}"
            body = f"{uid} {':x' * own.randint(0, most)}".encode()
            at = own.choice(moments) if bursts else own.random() * plan.duration_s * 0.9
            item = Item(uid, own.choice((QUEUES[0], *QUEUES)), body)
            world.at(at, own.choice(self._producers).give, item)

    def watcher(self) -> SmqBooks:
        """What is owed to them."""
        return self.books

    # -- the server's side ----------------------------------------------------------------------

    def door(self, letters: Letters) -> SmqDoor:
        """The door of a life that begins."""
        limits = SmqLimits(max_in_hand=self._in_hand, max_wait_s=self._wait_s)
        door = SmqDoor(self._new_id, limits, SmqOptions(durable=self._durable), letters)
        letters.add(door)
        return door

    def _new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""
        broker = self._simulation.broker
        found: list[tuple[bytes, Message]] = []
        for queue in broker.queues():
            if self.is_of(queue):
                name = foreign_name(queue.channel_name)
                found += [(name, each) for each in queue.regular.messages()]
        self.books.holds = broker.holds
        self.books.began(found)
        if self._room:
            changes = QueueChanges(
                status=STATUS_ROUND_ROBIN,
                request_acknowledge=True,
                durable=self._durable,
                put_back_limit=-1,
                message_limit=self._room,
            )
            operator = self._simulation.operator
            for name in QUEUES:
                channel = exact_channel(name)
                operator.ask(CreateQueue(operator.number, None, channel, QUEUE, changes))

    # -- the end --------------------------------------------------------------------------------

    def is_of(self, queue: Queue) -> bool:
        """Whether a queue is one of Simple MQ."""
        return foreign_name(queue.channel_name) in QUEUES

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        left = {each.name: each.owes for each in self._producers}
        left.update({each.name: each.owes for each in self._consumers})
        return left

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is missing.
        """
        living = [each.link.number for each in self._consumers if each.synced]
        self.books.check_end(living)
