"""One run: a plan comes true, faults first, then the world heals and everything comes home.

Theory of operation.  In the first phase the clients work while faults befall them; only safety is
judged, at every step.  Then the world heals: silence and clogging end, the server is up, the disk
works, the bad clients leave; what is half-open stays so, for its peers must find that out.  From
there everything that is still owed must come home within a minute.  At last the whole history is
judged (``checkers.py``).
"""

from __future__ import annotations

import traceback
from typing import Final, TypeAlias

from tmqp.limits import Limits
from tmqp_client.config import ClientLimits
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import Door
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.events import ALL_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import DeliveryHandler, HandlerRegistry
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.calls import CallSettings
from tmqp_server.shell.datagrams import Datagrams
from tmqp_server.shell.outbound import Marks
from tmqp_server.shell.turn import Turn
from tmqp_sim.appointments import Appointments
from tmqp_sim.books import MOST_STATE_BYTES, Ballast
from tmqp_sim.built import Built
from tmqp_sim.checkers import judge
from tmqp_sim.clients import SimClient
from tmqp_sim.cluster_plan import draw_cluster, is_cluster
from tmqp_sim.cluster_world import ClusterWorld
from tmqp_sim.consumers import Consumer, Meddler, Puller
from tmqp_sim.copies import SOURCE, TARGETS
from tmqp_sim.crowd import Crowd
from tmqp_sim.datagrams import marks_of_sources
from tmqp_sim.disk import Disk
from tmqp_sim.epochs import found_on
from tmqp_sim.faults import inject
from tmqp_sim.foreign import ForeignDoor
from tmqp_sim.forgers import Forger
from tmqp_sim.history import History, Place
from tmqp_sim.insiders import INSIDERS, insiders_of
from tmqp_sim.inventories import check_epochs, check_moves, check_staged
from tmqp_sim.lapses import SentByLink
from tmqp_sim.ledger import Ledger
from tmqp_sim.lifetimes import Lifetimes
from tmqp_sim.movers import FROM, MOVES
from tmqp_sim.network import Network
from tmqp_sim.operators import HANDLER, PREFIX, Operator, changes_of
from tmqp_sim.outside import CALLS_AT_ONCE, HOOK_TIMEOUT_S, Outside
from tmqp_sim.overseers import Overseer, web_door
from tmqp_sim.plan import ClientPlan, MessagePlan, Plan, draw_plan
from tmqp_sim.producers import BulkProducer, Producer
from tmqp_sim.raw import RAW_ROLES, Raw
from tmqp_sim.results import Result
from tmqp_sim.server import Server
from tmqp_sim.sides import Sides
from tmqp_sim.sprayers import SPRAYER, Sprayer
from tmqp_sim.strangers import Stranger
from tmqp_sim.tenants import TENANTS, Tenant, Tenants
from tmqp_sim.viewers import Viewer
from tmqp_sim.web import WebProducer, WebPuller
from tmqp_sim.workers import Workers
from tmqp_sim.world import Violation, World

__all__ = ["HEALING_S", "WATCHABLE", "Simulation", "run", "run_handler"]


def _watchable() -> bool:
    try:
        import tmqp_sim.watch  # noqa: F401, PLC0415 - what is tried is the import
    except TypeError:
        return False
    return True


#: Whether every step of the broker can be watched: a broker that was compiled without the module
#: ``watch`` has no subclasses.
WATCHABLE: Final = _watchable()

#: Those who are not judged by what happens to their messages.
AnyBad: TypeAlias = (
    Consumer
    | Forger
    | Stranger
    | Sprayer
    | Meddler
    | Raw
    | Crowd
    | WebPuller
    | Viewer
    | Tenant
    | Overseer
)
#: What bounds the code outside.
_CALLS: Final = CallSettings(HOOK_TIMEOUT_S, HOOK_TIMEOUT_S, CALLS_AT_ONCE, (HANDLER,), 5)
#: What everything that is owed has to come home, in simulated seconds.
HEALING_S: Final = 60.0
#: What a producer that pushes in bulk may have unconfirmed.
BULK_WINDOW: Final = 1_000
#: After it has come home nothing more may come: so much longer is looked.
QUIET_S: Final = 2.5
#: Bytes of transactions in memory, by whether the seed is odd: more than is ever pushed, or so
#: little that the second push at one time is put aside.
_PACKS_BEHIND: Final = 3
_STAGED_IN_MEMORY: Final = (1 << 20, 2_400)


class Simulation:
    """One run.

    :param plan: what is to happen.
    :param handlers: the delivery handlers that queues may name; the built-in ones if None.
    :param watched: judge every step of the broker, not only the end.
    """

    ledger: Ledger
    broker: Broker

    def __init__(
        self, plan: Plan, handlers: HandlerRegistry | None = None, *, watched: bool = WATCHABLE
    ) -> None:
        self.plan = plan
        self.watched = watched
        self.world = World(plan.seed)
        self.places: dict[tuple[str, int], Place] = {place.key: place for place in plan.places}
        self.history = History(self.places)
        self.lifetimes = Lifetimes(self.world, self.places, fails=plan.fails)
        self.appointments = Appointments(self.world, self.history.pushes)
        self.network = Network(self.world, plan.shape)
        self.healed = False
        self.sent = SentByLink()
        self._handlers = handlers
        self._marks = _marks_of(plan)
        self.disk = Disk(self, plan.disk)
        self.operator = Operator(self, tells=plan.tells)
        self.protocol = Limits(ping_interval_s=2.0, handshake_timeout_s=3.0)
        self._door_ids = 0
        self.outside = Outside(self.world, lambda: [*INSIDERS, *(each.name for each in self.bad)])
        self.server = Server(
            self.world,
            self._build,
            self._began,
            self.disk.do,
            self.outside,
            plan.lateness_s,
            self.protocol.ping_interval_s,
            rates=plan.rates,
        )
        self.server.foreign_share = plan.foreign
        self.server.paces.shared = plan.shared_address
        limits = ClientLimits(
            protocol=self.protocol,
            response_timeout_s=3.0,
            acknowledge_timeout_s=2.0,
            pull_timeout_s=3.0,
            consumer_messages=8,
        )
        self.producers = [self._producer(number, limits) for number in range(plan.producers)]
        self.good: list[SimClient] = [*self.producers]
        self.workers = Workers(self, plan, limits)
        self.writers, self.movers = self.workers.writers, self.workers.movers
        self.copies = self.workers.copies
        self.good += self.workers.all
        self.sides = Sides(self, plan, limits)
        self.insiders = insiders_of(self, plan)
        self.tenants = Tenants(self, plan.memory_bytes, fails=plan.fails)
        self.bad: list[AnyBad] = []
        for each in plan.clients:
            self._add_client(each, limits)
        for client in self.clients:
            client.by_web_socket = client.name in plan.web_sockets

    @property
    def clients(self) -> list[SimClient]:
        """Everybody with a client machine."""
        guests = self.sides.guests
        return [*self.good, *guests, *(each for each in self.bad if isinstance(each, SimClient))]

    def _producer(self, number: int, limits: ClientLimits) -> Producer:
        plan = self.plan
        name = f"producer-{number}"
        if number == plan.web_producer:
            self.history.nameless[name] = None
            return WebProducer(self, name, limits, plan.window)
        if number == plan.bulk_producer:
            linger_s = plan.bulk_linger_s
            return BulkProducer(self, name, limits, BULK_WINDOW, linger_s, plan.bulk_traces)
        return Producer(self, name, limits, plan.window)

    def _add_client(self, each: ClientPlan, limits: ClientLimits) -> None:
        place = self.plan.places[each.place]
        client: AnyBad
        if each.role == "meddler":
            client = Meddler(self, each.name, limits)
        elif each.role == "viewer":
            client = Viewer(self, each.name, limits)
        elif each.role in TENANTS:
            client = Tenant(self, each.name, limits, each.role)
            self.tenants.add(client)
        elif each.role == "forger":
            client = Forger(self, each.name, limits)
        elif each.role == "crowd":
            client = Crowd(self, each.name)
        elif each.role in RAW_ROLES:
            client = Raw(self, each.name, each.role, place.channel)
        elif each.role == "stranger":
            client = Stranger(self, each.name)
        elif each.role == SPRAYER:
            client = Sprayer(self, each.name)
        elif each.role == "overseer":
            client = Overseer(self, each.name)
        elif each.role == "web-puller":
            client = WebPuller(self, each.name, place, each.habits)
        elif each.role == "puller":
            client = Puller(
                self, each.name, limits, place.channel, place.queue_id, each.habits,
                newest_first=each.name.endswith("1"),
            )  # fmt: skip
        else:
            client = Consumer(self, each.name, limits, place.channel, each.habits)
        if each.bad or isinstance(client, (Raw, Stranger, Sprayer, Crowd, WebPuller, Overseer)):
            self.bad.append(client)
        else:
            self.good.append(client)
        self.world.at(each.at, client.connect)

    # -- the server's lives ---------------------------------------------------------------------

    def _build(self) -> Built:
        plan = self.plan
        limits = EngineLimits(
            max_channels=40,
            max_in_flight_per_session=plan.max_in_flight,
            max_total_bytes=plan.memory_bytes + MOST_STATE_BYTES,
            max_transactions_memory_bytes=_STAGED_IN_MEMORY[plan.seed % 2],
            max_work_per_step=plan.work_per_step,
        )
        options = self._options()
        for place in self.places.values():
            if place.fleeting:  # who comes when it is gone makes it again
                queue = changes_of(place).applied_to(QueueOptions())
                rules = ChannelOptions(destroy_when_empty=True, queue=queue)
                options = self._options(rules)
        self.ledger = Ledger(
            self.world, self.places, plan.max_in_flight, self.sent, self.history.pushes,
            self.lifetimes, self.appointments,
        )  # fmt: skip
        self.ledger.trusting = plan.trusting
        letters = Letters()
        door = NativeDoor(self._new_door_id, self.protocol, letters=letters)
        overseen = AdminWorld()
        web = web_door(overseen, self._new_door_id, letters, door)
        foreign = ForeignDoor(self._new_door_id, self.protocol, letters)
        others = self.sides.doors(letters)
        journal = self.disk.new_journal([door, web, foreign, *(each for _, each in others)])
        reader = LetterWires(letters)
        if self.watched:
            from tmqp_sim.recorded import Notebook  # noqa: PLC0415 - see WATCHABLE
            from tmqp_sim.watch import WatchedBroker  # noqa: PLC0415

            watched = WatchedBroker(
                limits, options, self._handlers,
                self.ledger, self.disk.audit, self.world, plan.take_over,
                plan.divides_runs, self.outside, plan.fails,
            )  # fmt: skip
            watched.hub = Hub(
                watched, plan.buffers[0], journal, guarded=plan.guarded, takes_custom=True
            )
            if plan.guarded:
                watched.notebook = Notebook(self.world)
                watched.hub.auditor = watched.notebook.auditor
            watched.know_wires(reader, _PACKS_BEHIND)
            watched.copies = self.copies
            watched.sides = self.sides.books()
            watched.ballast = Ballast(watched, self._queues())
            self.broker = watched
            turn = overseen.turn = Turn(watched.hub, self._marks, journal, _CALLS)
            watched.datagrams = self._datagrams(turn, foreign)
            return Built(
                turn, door, watched.ballast, watched.begin_portion, web, foreign,
                watched.datagrams, others,
            )  # fmt: skip
        self.broker = Broker(limits, options, self._handlers)
        self.broker.know_wires(reader, _PACKS_BEHIND)
        ballast = Ballast(self.broker, self._queues())
        hub = Hub(self.broker, plan.buffers[0], journal, guarded=plan.guarded, takes_custom=True)
        turn = overseen.turn = Turn(hub, self._marks, journal, _CALLS)
        datagrams = self._datagrams(turn, foreign)
        return Built(turn, door, ballast, None, web, foreign, datagrams, others)

    def _queues(self) -> int:
        """How many queues are made in any case, by the operator and by clients."""
        plan = self.plan
        fed = 1 + len(TARGETS) if plan.feeds else 0
        return len(plan.places) + bool(plan.epochs) + fed

    def _datagrams(self, turn: Turn, door: Door) -> Datagrams | None:
        """Where datagrams come in, if anybody sends some."""
        if all(each.role != SPRAYER for each in self.plan.clients):
            return None
        datagrams = Datagrams(turn, door, marks_of_sources())
        turn.datagrams.append(datagrams)
        return datagrams

    def _options(self, channel: ChannelOptions | None = None) -> BrokerOptions:
        handlers = {HANDLER: ALL_EVENTS}
        return BrokerOptions(
            channel=channel, storage=True, http_prefixes=(PREFIX,), event_handlers=handlers
        )

    def _new_door_id(self) -> str:
        self._door_ids += 1
        return f"door-{self._door_ids}"

    def _began(self) -> None:
        saving = self.server.turn.saving
        assert saving is not None, "there is a disk"
        saving.patience_s = self.plan.patience_s
        self.disk.begin(self.server.lives, self.server.hub)
        check_epochs(self)
        check_moves(self)
        self.check_feeds(begins=True)
        for each in self.insiders:
            each.began()
        self.tenants.begin(self.broker)
        self.operator.begin()
        self.sides.began()

    def check_feeds(self, *, begins: bool = False) -> None:
        """Of what goes through feeds nothing is on the disk twice, nor missing.

        :param begins: a life begins, so the feeds are those that the disk knows.
        :raises Violation: when that is not so.
        """
        if self.copies is None:
            return
        there: dict[str, list[str]] = {}
        feeds: list[str] = []  # none, too, where the disk does not know the source (seed 84672)
        for queue in self.broker.queues():
            if queue.channel_name == SOURCE or queue.channel_name in TARGETS:
                there[queue.channel_name] = found_on(self.disk.store, queue.key)
            if queue.channel_name == SOURCE:
                feeds += [feed.kept().target for feed in queue.feeds or ()]
        if begins:
            self.copies.check_feeds(feeds)
        self.copies.check_disk(there)
        if begins:
            self.copies.began()

    def crash_server(self) -> None:
        """The server and what the disk had not yet."""
        self.server.crash()
        self.disk.crash()

    def stop_server(self, life: int) -> None:
        """The server ends in order: the disk gets all that it has to know."""
        server = self.server
        if not server.up or server.lives != life:
            return
        if server.asleep:
            self.crash_server()
            return
        self.world.mark("server stopped in order")
        if not server.turn.is_told:
            self.world.mark("event handler behind at the end")
        if server.turn.lost_events:
            self.world.mark("events lost to a handler")
        server.drop_sessions()
        server.turn.finish(server.now)
        server.attend()
        self.disk.hurry()
        server.crash()

    def free_disk(self) -> None:
        """There is room again."""
        self.disk.full = False
        self.disk.full_for_messages = False

    def resume_queue(self, place: Place) -> None:
        """A queue that was paused continues; in a new life it was never paused."""
        server = self.server
        if not server.up:
            return
        if server.asleep:
            self.world.after(0.1, self.resume_queue, place)
            return
        self.operator.change_status(place, place.status)

    # -- the run --------------------------------------------------------------------------------

    def _schedule(self) -> None:
        for number, producer in enumerate(self.producers):
            self.world.at(0.01 * number, producer.connect)
        for index, message in enumerate(self.plan.messages):
            self.world.at(message.at, self._give, index, message)
        for fault in self.plan.faults:
            self.world.at(fault.at, inject, self, fault)
        if self.plan.tells:
            for third in (1, 2):
                at = third * self.plan.duration_s / 3
                self.world.at(at, self.operator.set_router_enabled, third == 2)

    def _give(self, index: int, message: MessagePlan) -> None:
        place = self.plan.places[message.place]
        producer = self.producers[message.producer]
        sent = message.sent(index, producer.name, place)
        sent.counts = self.plan.counts
        self.history.add(sent)
        producer.give(sent)

    def heal(self) -> None:
        """Faults end for good."""
        self.healed = True
        self.world.note("heals")
        self.free_disk()
        self.disk.habits.fails = 0
        self.network.heal()
        for client in self.bad:
            client.retire()
        if self.server.asleep:
            self.server.wake(self.server.lives)
        if not self.server.up:
            self.server.start()
        for place in self.places.values():
            self.resume_queue(place)

    def at_home(self) -> bool:
        """Nothing is owed any more."""
        for producer in self.producers:
            if producer.ready or producer.under_way:
                return False
        if any(worker.owes for worker in self.workers.all):
            return False
        for client in self.good:
            if not client.usable or client.link.dead:
                return False
        if any(self.sides.owed().values()):
            return False
        return all(not queue.live() for queue in self.broker.queues() if self._matters(queue))

    def _come_home(self) -> tuple[bool, float]:
        """Whether in the end nothing is owed, nor any more a while later; how long that took.

        What was pushed by those who do not ask may be on its way when nobody owes anything yet
        (seed 1011595).  And while there is less than there was, nothing is stuck: what a producer
        pushed again and again may take one slow consumer minutes (seed 1286092).  Nor is it while
        clients owe less than before, although queues may have more: of what is pushed again, where
        an address may send two messages a second, and each window of its producer makes all who are
        there wait until they give up the server (seed 44069), or of what feeds copy (seed 18767).
        """
        until = self.world.now + HEALING_S
        while True:
            before, promised = self._left(), self._promised()
            home = self.world.run(until, self.at_home)
            healed_in = self.world.now - self.plan.duration_s
            if not home and (self._left() < before or self._promised() < promised):
                until = self.world.now + HEALING_S
                continue
            self.world.run(self.world.now + QUIET_S)
            if not home or self.at_home():
                return home, healed_in

    def _left(self) -> int:
        return sum(self.owed().values())

    def _promised(self) -> int:
        """What those have still to do who count down."""
        return sum(each.owes for each in (*self.producers, *self.workers.all))

    def _matters(self, queue: Queue) -> bool:
        place = (queue.channel_name, queue.queue_id)
        if self.sides.is_of(queue):
            return True
        if place[0] == SOURCE or place[0] in TARGETS:
            return True
        return place in self.places or place == (MOVES, FROM)

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        left: dict[str, int] = {}
        for producer in self.producers:
            left[producer.name] = producer.owes
        for worker in self.workers.all:
            left[worker.name] = worker.owes
        left.update(self.sides.owed())
        for queue in self.broker.queues():
            if self._matters(queue):
                left[repr(queue)] = queue.live()
        for client in self.good:
            left[f"{client.name}, waiting to be let in,"] = int(not client.usable)
        return left

    def go(self) -> Result:
        """Let it happen."""
        checker = text = ""
        healed_in = 0.0
        try:
            self.server.start()
            self._schedule()
            self.world.run(self.plan.duration_s)
            self.heal()
            home, healed_in = self._come_home()
            if not home:
                self.world.note("stuck", "not everything has come home")
            check_epochs(self)
            check_moves(self)
            self.check_feeds()
            if self.copies is not None and home:
                self.copies.check_end(self.server.lives)
            if home:
                self.sides.check_end()
            check_staged(self)
            checker, found = judge(
                self.history,
                self.server.lives,
                self.sent if self.watched else None,
                self.ledger.accepted,
                self.owed(),
                self.sent.lapsed,
            )
            text = "\n".join(found)
        except Violation as violation:
            checker, text = violation.checker, violation.text
        except Exception:  # noqa: BLE001 - whatever our code raises is a finding
            checker, text = "exception", traceback.format_exc()
        if not checker:
            self._count()
        return Result(self.plan, self.world, checker, text, healed_in)

    def _count(self) -> None:
        """Marks that the broker's own counters tell."""
        marks = self.world.marks
        for queue in self.broker.queues():
            for name in ("requeued", "dead", "skipped", "untracked", "unknown_acks", "refused"):
                count = getattr(queue.counters, name)
                if count:
                    mark = f"queue counter: {name}"
                    marks[mark] = marks.get(mark, 0) + count


def _marks_of(plan: Plan) -> Marks:
    high, low, most = plan.buffers
    return Marks(most, high, low, stall_timeout_s=3.0, flush_timeout_s=0.5)


def run(seed: int, left_out: tuple[str, ...] = (), *, watched: bool = WATCHABLE) -> Result:
    """Run one seed, without the things of its plan that are left out.

    :param watched: judge every step of the broker, not only the end, where it can be done.
    """
    if is_cluster(seed):
        cluster = draw_cluster(seed)
        cluster.without(left_out)
        return ClusterWorld(cluster).go()
    plan = draw_plan(seed)
    plan.without(left_out)
    return Simulation(plan, watched=watched).go()


def run_handler(
    seed: int, name: str, handler: DeliveryHandler, promise: str = "once-or-more"
) -> Result:
    """Run one seed with a delivery handler of your own in its ordinary queues.

    :param promise: as :meth:`Plan.use_handler`.
    """
    registry = built_in_handlers()
    registry.register(name, handler)
    plan = draw_plan(seed)
    plan.use_handler(name, promise)
    return Simulation(plan, registry).go()
