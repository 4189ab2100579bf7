"""The parts of a run that speak STOMP and OpenWire: their clients, and the door of each life."""

from __future__ import annotations

from random import Random
from typing import Final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import foreign_name
from tmqp_server.doors.openwire.door import OpenwireDoor
from tmqp_server.doors.openwire.message import OpenwireMessage, fields_of
from tmqp_server.doors.openwire.options import OpenwireOptions
from tmqp_server.doors.port import Door
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompMessage
from tmqp_server.doors.stomp.options import StompOptions
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import TEN
from tmqp_sim.host import OPENWIRE, STOMP
from tmqp_sim.jms import JmsConsumer, JmsProducer, MakeWire, Temper
from tmqp_sim.jms_books import DEAD, FIRST, MORE, NEXT, TOPIC, WILD, Item, JmsBooks, Unit
from tmqp_sim.jms_habits import JmsHabits
from tmqp_sim.jms_wires import (
    AUTO,
    CLIENT,
    INDIVIDUAL,
    STOMP_VERSIONS,
    JmsWire,
    OpenwireWire,
    StompWire,
)
from tmqp_sim.plan import Plan
from tmqp_sim.side import Side
from tmqp_sim.side_books import SideBooks
from tmqp_sim.stage import Stage
from tmqp_wires.openwire.data import decode_text

__all__ = ["OpenwireSide", "StompSide"]

#: A fault behind which the disk may not have what it was given.
_UNSTEADY: Final = "disk-full"
_DURABLE: Final = "durable://"
#: The name of each client's durable subscription.
_NAME: Final = "news"
_OPENWIRE_VERSIONS: Final = (9, 10, 12, 12)


class _JmsSide(Side):
    """Clients of one of both, and what happened to their messages.

    :param units: how many units are sent.
    :param durable: whether their queues are on disk.
    """

    checker = ""
    title = ""
    #: Whether being written to may be a consumer's answer.
    has_auto = False

    def __init__(self, simulation: Stage, plan: Plan, units: int, *, durable: bool) -> None:
        self._simulation = simulation
        self._ids = simulation.world.child(f"{self.checker} ids")
        own = Random(f"{plan.seed}/{self.checker} side")
        self._habits = JmsHabits(plan.seed, self.checker, has_auto=self.has_auto)
        self._kept = durable
        kinds = {fault.kind for fault in plan.faults}
        steady = not plan.disk.fails and _UNSTEADY not in kinds
        self.books = JmsBooks(
            simulation.world, self.checker, self.title,
            durable=durable, steady=steady, uid_of=self.uid_of,
        )  # fmt: skip
        # What waits for a disk that fails, or is read again after a crash, cannot go first.
        self.books.ranks.counts = not durable or (steady and "server-crash" not in kinds)
        self.books.confirms.done_confirms = self._habits.done_confirms
        self.books.watches = simulation.watched
        self._quiet = plan.quiet
        self._room = own.choice((400, 2_000, 65_536))
        count = own.choice((1, 2))
        self._producers = [
            JmsProducer(simulation, f"{self.checker}-producer-{n}", self.books, self._temper(own))
            for n in range(count)
        ]
        self._consumers = self._draw_consumers(own)
        self._begin(plan, own, units)

    # -- what the protocols do ------------------------------------------------------------------

    def make_wire(self, own: Random) -> MakeWire:
        """Makes connections of a client."""
        raise NotImplementedError

    @staticmethod
    def uid_of(wire: object) -> str:
        """The name of a message; empty for one of another protocol."""
        raise NotImplementedError

    # -- the clients ----------------------------------------------------------------------------

    def _temper(self, own: Random) -> Temper:
        restless = 0.0 if self._quiet else own.choice((0.0, 0.1, 0.3))
        pace_s = own.choice((0.0, 0.0, 0.3))
        make = self.make_wire(own)
        return Temper(self.host, self.title, make, restless, self._room, pace_s)

    def _draw_consumers(self, own: Random) -> list[JmsConsumer]:
        found: list[JmsConsumer] = []
        modes = (CLIENT, INDIVIDUAL, INDIVIDUAL)

        def add(role: str, place: str, *, moves: bool = False, durable: str = "") -> None:
            name = f"{self.checker}-{role}"
            work_s = own.choice((0.0, 0.05, 0.5))
            # Who would acknowledge by itself may have lost what it was sent (AUTO).
            mode = own.choice(modes)
            found.append(
                JmsConsumer(
                    self._simulation, name, self.books, self._temper(own), place, mode, work_s,
                    moves=moves, durable=durable,
                    exclusive=self._habits.exclusive and place == FIRST,
                )
            )  # fmt: skip

        movers = own.choice((0, 1, 2, 2))
        for number in range(own.choice((1, 2))):
            add(f"consumer-{number}", FIRST, moves=number < movers)
        for number in range(own.choice((1, 2))):
            add(f"next-{number}", NEXT)
        add("dead", DEAD)
        for number in range(own.choice((0, 1, 2))):
            add(f"durable-{number}", TOPIC, durable=_NAME)
        return found + self._draw_more_consumers(found)

    def _draw_more_consumers(self, others: list[JmsConsumer]) -> list[JmsConsumer]:
        """Those that only some runs have."""
        habits = self._habits
        own = habits.random
        if habits.exclusive:
            self.books.exclusives = {each.name for each in others}
        places = [(f"auto-{number}", FIRST, AUTO) for number in range(habits.auto)]
        if habits.wild:
            places.append(("wild", WILD, own.choice((CLIENT, INDIVIDUAL))))
        found: list[JmsConsumer] = []
        for role, place, mode in places:
            name = f"{self.checker}-{role}"
            found.append(
                JmsConsumer(
                    self._simulation, name, self.books, self._temper(own), place, mode,
                    own.choice((0.0, 0.05)),
                )
            )  # fmt: skip
            if mode == AUTO:
                self.books.autos.add(name)
        return found

    def _begin(self, plan: Plan, own: Random, units: int) -> None:
        """Let all of them come, and units come up; until somebody consumes, these wait."""
        world = self._simulation.world
        late_s = own.choice((0.5, 0.5, plan.duration_s * 0.9))
        for producer in self._producers:
            world.at(own.random() * 0.5, producer.connect)
        for consumer in self._consumers:
            world.at(own.random() * late_s, consumer.connect)
        moments = [own.random() * plan.duration_s * 0.9 for _ in range(3)]
        bursts = own.random() < 0.6
        numbers = iter(range(1, 10_000))
        for _ in range(units):
            at = own.choice(moments) if bursts else own.random() * plan.duration_s * 0.9
            unit = self._draw_unit(own, numbers)
            world.at(at, own.choice(self._producers).give, unit)

    def _draw_unit(self, own: Random, numbers: object) -> Unit:
        def item() -> Item:
            uid = f"{self.checker}{next(numbers)}"  # type: ignore[call-overload]
            place = own.choice((FIRST, FIRST, NEXT, TOPIC))
            if place != TOPIC and self._habits.has_wild_place():
                place = MORE
            return Item(uid, place, self._habits.priority())

        if own.random() < 0.6:
            return Unit([item()], transacted=False)
        items = [item() for _ in range(own.choice((1, 2, 4)))]
        return Unit(items, transacted=True, aborts=own.random() < 0.2)

    # -- the server's side ----------------------------------------------------------------------

    def watcher(self) -> SideBooks:
        """What is owed to them."""
        return self.books

    def _new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""
        restored: list[tuple[str, Message]] = []
        subscriptions: set[str] = set()
        for queue in self._simulation.broker.queues():
            name = foreign_name(queue.channel_name).decode()
            if name.startswith(_DURABLE):
                subscriptions.add(name.removeprefix(_DURABLE))
            elif self.is_of(queue):
                restored += [
                    (name, each)
                    for each in [*queue.high.messages(), *queue.regular.messages()]
                    if self.uid_of(each.wire)
                ]
        broker = self._simulation.broker
        self.books.holds = broker.holds
        self.books.is_over = lambda session: session not in broker._core.sessions
        self.books.ranks.has_ten = self._has_ten
        self.books.began(restored, subscriptions)

    def _has_ten(self, name: bytes) -> bool:
        """Whether each of ten priorities counts in a queue."""
        for queue in self._simulation.broker.queues():
            if foreign_name(queue.channel_name) == name:
                return queue.options.priorities == TEN
        return False

    # -- the end --------------------------------------------------------------------------------

    def is_of(self, queue: Queue) -> bool:
        """Whether a queue is one of theirs: those of the other protocol's clients are, too, for
        both meet in the same queues."""
        name = foreign_name(queue.channel_name).decode()
        return name in (FIRST, NEXT, DEAD, MORE) or name.startswith(_DURABLE)

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        left = {each.name: each.owes for each in self._producers}
        left.update({each.name: each.owes for each in self._consumers})
        return left

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is missing.
        """
        self.books.check_end()


class StompSide(_JmsSide):
    """Those who speak STOMP."""

    host = STOMP
    checker = "stomp"
    title = "STOMP"
    has_auto = True

    def __init__(self, simulation: Stage, plan: Plan) -> None:
        super().__init__(simulation, plan, plan.stomp, durable=plan.stomp_durable)

    def make_wire(self, own: Random) -> MakeWire:
        """Makes connections of a client."""
        version = own.choice(STOMP_VERSIONS)

        def make(now: float, client_id: str) -> JmsWire:
            return StompWire(now, client_id, version)

        return make

    @staticmethod
    def uid_of(wire: object) -> str:
        """The name of a message; empty for one of another protocol."""
        if not isinstance(wire, StompMessage):
            return ""
        return wire.body.partition(b" ")[0].decode()

    def door(self, letters: Letters) -> Door:
        """The door of a life that begins."""
        options = StompOptions(
            durable=self._kept,
            redeliveries=-1,
            dead_letters=DEAD,
            priorities=self._habits.priorities,
        )
        door = StompDoor(
            self._new_id, None, options, letters,
            durable=self._kept, done_confirms=self._habits.done_confirms,
        )  # fmt: skip
        letters.add(door)
        return door


class OpenwireSide(_JmsSide):
    """Those who speak OpenWire."""

    host = OPENWIRE
    checker = "openwire"
    title = "OpenWire"

    def __init__(self, simulation: Stage, plan: Plan) -> None:
        super().__init__(simulation, plan, plan.openwire, durable=plan.openwire_durable)

    def make_wire(self, own: Random) -> MakeWire:
        """Makes connections of a client."""
        version = own.choice(_OPENWIRE_VERSIONS)

        def make(now: float, client_id: str) -> JmsWire:
            return OpenwireWire(now, client_id, version)

        return make

    @staticmethod
    def uid_of(wire: object) -> str:
        """The name of a message; empty for one of another protocol."""
        if not isinstance(wire, OpenwireMessage):
            return ""
        content = fields_of(wire.kept).content or b""
        return decode_text(content[4:]).partition(" ")[0]

    def door(self, letters: Letters) -> Door:
        """The door of a life that begins."""
        options = OpenwireOptions(
            durable=self._kept,
            dead_letters=DEAD,
            inactivity_ms=0,
            priorities=self._habits.priorities,
        )
        door = OpenwireDoor(
            self._new_id, None, options, letters,
            durable=self._kept, done_confirms=self._habits.done_confirms,
        )  # fmt: skip
        letters.add(door)
        return door
