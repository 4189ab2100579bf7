"""The part of a run that speaks NSQ: its clients, their items, and the door of each life."""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

from tmqp_client.config import ClientLimits
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import foreign_name
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.door import NsqDoor
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_server.doors.tables import Numbers
from tmqp_server.engine.model.queues import Queue
from tmqp_sim.disk import EPOCH_S, Disk
from tmqp_sim.host import NSQ
from tmqp_sim.nsq import HEARTBEAT_S, NsqClient, NsqConsumer, NsqProducer
from tmqp_sim.nsq_books import (
    CHANNELS,
    FIRSTS,
    MOST_TIMEOUT_S,
    SHARED,
    TIMEOUT_S,
    TOPICS,
    Item,
    NsqBooks,
)
from tmqp_sim.nsq_guests import NsqGuest
from tmqp_sim.plan import Plan
from tmqp_sim.side import Side
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["NsqSide"]

_PRODUCERS: Final = 2
#: How many of the runs measure end-to-end latency.
_MEASURED: Final = 0.5
#: When the channels that are not the first ones of their topics come at the earliest, and how
#: often one looks whether they may.
_LOOK_EVERY_S: Final = 0.2
#: What a server that has was suspended may be late.
_SLACK_S: Final = 5.0
#: Faults behind which the disk may not have what it was given, and times are not what they were.
_UNSTEADY: Final = "disk-full"
_INEXACT: Final = "clock"


class _Run(Stage, Protocol):
    """One run, with its disk."""

    disk: Disk


class NsqSide(Side):
    """Clients of NSQ, and what they were told.

    :param limits: of the client that speaks TMQP.
    """

    host = NSQ

    def __init__(self, simulation: _Run, plan: Plan, limits: ClientLimits) -> None:
        self._simulation = simulation
        self._world = simulation.world
        kinds = {fault.kind for fault in plan.faults}
        self.books = NsqBooks(
            self._world,
            durable=plan.nsq_durable,
            steady=not plan.disk.fails and _UNSTEADY not in kinds,
            exact=_INEXACT not in kinds,
        )
        self.books.watches = simulation.watched
        self._ids = self._world.child("nsq ids")
        measures = Random(f"{plan.seed}/nsq latency").random() < _MEASURED
        self._percentiles = Numbers([0.5, 1.0]) if measures else Numbers()
        self._context: NsqContext | None = None
        own = Random(f"{plan.seed}/nsq items")
        restless = 0.0 if plan.quiet else own.choice((0.0, 0.1, 0.3))
        self.producers = [
            NsqProducer(simulation, f"nsq-producer-{number}", self.books, restless)
            for number in range(_PRODUCERS)
        ]
        self.consumers: list[NsqConsumer] = []
        for number in range(len(CHANNELS)):
            for count in range(1 if number not in FIRSTS else own.choice((1, 2, 3))):
                name = f"nsq-consumer-{number}-{count}"
                self.consumers.append(NsqConsumer(simulation, name, self.books, restless, number))
        self.guests: list[NsqGuest] = []
        items = self._items(plan, own)
        if plan.nsq_durable and own.random() < 0.5:
            pushed = [item for item in items if item.topic == SHARED and not item.delay_s][:5]
            items = [item for item in items if item not in pushed]
            self.guests.append(NsqGuest(simulation, "nsq-guest", limits, self.books, pushed))
        for item in items:
            at = own.random() * plan.duration_s * 0.9
            self._world.at(at, own.choice(self.producers).give, item)
        self._begin(own)

    def _items(self, plan: Plan, own: Random) -> list[Item]:
        sizes = own.choice(((0, 0), (0, 100)))
        deferred = own.choice((0.0, 0.2, 0.5))
        found: list[Item] = []
        for number in range(plan.nsq):
            delay_s = own.choice((0.2, 1.0, 2.5)) if own.random() < deferred else 0.0
            topic = own.choice((0, 0, 1, 2, 2))
            found.append(Item(f"n{number}", topic, own.randint(*sizes), delay_s))
        return found

    def _begin(self, own: Random) -> None:
        """Let the first channels come when anybody publishes or before, and then the others."""
        for client in self.clients:
            if isinstance(client, NsqConsumer) and client.number not in FIRSTS:
                self._follow(client, own.random() * 3.0)
            else:
                self._world.at(own.random() * 0.5, client.connect)

    def _follow(self, consumer: NsqConsumer, delay_s: float) -> None:
        topic = CHANNELS[consumer.number][0]
        if self.books.there[FIRSTS[topic]]:
            self._world.after(delay_s, consumer.connect)
        else:
            self._world.after(_LOOK_EVERY_S, self._follow, consumer, delay_s)

    @property
    def clients(self) -> list[NsqClient | NsqGuest]:
        """All of them, the guest too."""
        return [*self.producers, *self.consumers, *self.guests]

    def watcher(self) -> NsqBooks:
        """What is owed to them."""
        return self.books

    # -- the server's side ----------------------------------------------------------------------

    def door(self, letters: Letters) -> NsqDoor:
        """The door of a life that begins."""
        options = NsqOptions(
            msg_timeout_ms=round(TIMEOUT_S * 1_000),
            max_msg_timeout_ms=round(MOST_TIMEOUT_S * 1_000),
            heartbeat_interval_ms=round(HEARTBEAT_S * 1_000),
            mem_queue_size=self._ids.choice((1, 5, 10_000)),
            e2e_processing_latency_percentiles=self._percentiles,
        )
        offset_s = EPOCH_S + self._simulation.server.booted_at
        context = self._context = NsqContext(
            self._new_id, NsqLimits(), options, offset_s,
            has_tls=True, durable=self.books.durable,
        )  # fmt: skip
        door = NsqDoor(context, letters)
        letters.add(door)
        return door

    def _new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""
        fed: list[bytes] = []
        for queue in self._simulation.broker.queues():
            fed += [foreign_name(feed.kept().target) for feed in queue.feeds or ()]
        self.books.began(fed)

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is owed, or somebody has a session who is long gone.
        """
        self.books.check_end()
        self._check_latencies()
        server = self._simulation.server
        for session in server.sessions.values():
            silent_s = self._world.now - session.received_at
            late_s = silent_s - 2 * HEARTBEAT_S - server.lateness_s
            if session.host.startswith(NSQ) and session.end.link.dead and late_s > _SLACK_S:
                text = f"session {session.number} is silent for {silent_s:.1f} s, and still there"
                raise Violation("nsq", text)

    def _check_latencies(self) -> None:
        """What was finished is measured, and nothing else."""
        context = self._context
        if context is None or not self._percentiles:
            return
        self._world.mark("NSQ latencies measured")
        now_ns = context.unix_ns(context.time_s)
        latencies = context.world.latencies
        told = [latencies.told(TOPICS[topic], name, now_ns) for topic, name in CHANNELS]
        dropped = self._simulation.server.hub.commands_dropped
        self.books.check_measured([int(str(each["count"])) for each in told], dropped)

    # -- the end --------------------------------------------------------------------------------

    def is_of(self, queue: Queue) -> bool:
        """Whether a queue is a topic or a channel."""
        return self.books.is_of(queue.channel_name)

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        left = {producer.name: producer.owes for producer in self.producers}
        left.update({guest.name: guest.owes for guest in self.guests})
        for client in self.clients:
            there = client.usable and not client.link.dead
            left[f"{client.name}, waiting to be let in,"] = int(not there)
        return left
