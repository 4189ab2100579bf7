"""Owns the plan of a run: what one seed stands for, before anything happens.

Theory of operation.  A seed is drawn into a plan: the places, the clients, every message with its
time, every fault with its time.  Each seed turns some kinds of faults on and leaves others out, for
faults hide one another; a quarter of the runs is quiet.  What a plan holds bears a name of its own
(``cut 3``, ``message 17``, ``slow-1``), so that a plan can be made smaller by leaving
things out, and the rest stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from tmqp.constants import STATUS_BROADCAST, STATUS_PULL, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_sim.consumers import Habits
from tmqp_sim.disk import DiskHabits
from tmqp_sim.history import Place
from tmqp_sim.network import Shape
from tmqp_sim.raw import RAW_ROLES

__all__ = ["FAULT_KINDS", "ORDINARY", "ClientPlan", "Fault", "MessagePlan", "Plan", "draw_plan"]

#: What can happen, and what it does to whom.
FAULT_KINDS: Final[dict[str, str]] = {
    "cut": "a connection is reset",
    "half-open": "a connection dies and nobody is told",
    "silence": "one direction of a connection is silent for a while",
    "swizzle": "connections fall silent one by one and come back in another order",
    "clog": "everything takes longer for a while",
    "client-crash": "a client loses its memory and comes back",
    "freeze": "the server's process stands still",
    "server-crash": "the server loses its memory and comes back with what the disk has",
    "stop": "the server closes every connection politely",
    "restart": "the server stops in order and comes back",
    "disk-full": "no batch can be written for a while",
    "pause-queue": "a queue is paused and goes on later",
    "credit": "a consumer with a small credit joins and grants more from time to time",
    "clock": "the wall clock jumps by an hour",
    "clear": "what waits in a queue is removed on purpose",
}
#: What happens once a run at the most.
_ONCE: Final = ("clear", "freeze", "server-crash", "stop", "restart", "credit")
#: Kinds of queues whose delivery handler may be another one.
ORDINARY: Final = ("work", "share", "polite", "durable", "pull", "spill")
#: Runs in which many messages are pushed at once into a place of their own.
_BULK_SHARE: Final = 0.3
#: How many of the plans have a channel that is destroyed when it is empty, and of which kinds.
_FLEETING_SHARE: Final = 0.25
_FLEETING: Final = ("work", "saved", "durable", "spill", "brief", "pull")
#: The end of the phase with faults, in seconds.
_SHORTEST_S: Final = 6.0
_LONGEST_S: Final = 20.0


class Fault:
    """One fault: its kind, its time, for how long, and a number in 0..1 that picks the victim."""

    __slots__ = ("at", "kind", "lasts_s", "name", "pick")

    def __init__(self, name: str, kind: str, at: float, lasts_s: float, pick: float) -> None:
        self.name = name
        self.kind = kind
        self.at = at
        self.lasts_s = lasts_s
        self.pick = pick

    def __repr__(self) -> str:
        return f"{self.name}: {self.kind} at {self.at:.2f} s for {self.lasts_s:.2f} s"


class MessagePlan:
    """One message: when it comes up, who sends it, where to."""

    __slots__ = ("asks", "at", "high", "name", "place", "producer", "size")

    def __init__(
        self, name: str, at: float, producer: int, place: int, high: bool, size: int, asks: bool
    ) -> None:
        self.name = name
        self.at = at
        self.producer = producer
        self.place = place
        self.high = high
        self.size = size
        self.asks = asks


class ClientPlan:
    """One client beside the producers: its role and habits, and the place it cares for.

    ``bad`` ones leave when the world heals; the others must bring everything home.
    """

    __slots__ = ("at", "bad", "habits", "name", "place", "role")

    def __init__(
        self, name: str, role: str, place: int, habits: Habits, at: float, bad: bool
    ) -> None:
        self.name = name
        self.role = role
        self.place = place
        self.habits = habits
        self.at = at
        self.bad = bad


class Plan:
    """All that a run begins with."""

    __slots__ = (
        "buffers",
        "bulk_linger_s",
        "bulk_producer",
        "clients",
        "disk",
        "divides_runs",
        "duration_s",
        "fails",
        "epochs",
        "faults",
        "guarded",
        "lateness_s",
        "left_out",
        "max_in_flight",
        "memory_bytes",
        "messages",
        "places",
        "producers",
        "quiet",
        "seed",
        "shape",
        "take_over",
        "tells",
        "window",
        "work_per_step",
    )

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.quiet = False
        self.duration_s = 0.0
        self.places: list[Place] = []
        self.producers = 0
        self.window = 1
        self.clients: list[ClientPlan] = []
        self.messages: list[MessagePlan] = []
        self.faults: list[Fault] = []
        self.shape = Shape(0.001, 0.01, 65_536, 100)
        self.disk = DiskHabits(0.001, 0.01, 0)
        self.lateness_s = 0.0
        self.take_over = False
        self.max_in_flight = 10_000
        self.work_per_step = 1_000
        #: Rights are asked about; channels have an event handler.
        self.guarded = False
        self.tells = False
        #: The broker fails now and then at a deadline.
        self.fails = False
        #: What the messages of all queues may take.
        self.memory_bytes = 1_073_741_824
        #: Output limits of the server: high and low water, the most.
        self.buffers = (262_144, 65_536, 4_194_304)
        #: So many epochs are written in transactions.
        self.epochs = 0
        #: The number of the producer that writes many messages at once, if there is one, and for
        #: how long it gathers them.
        self.bulk_producer = -1
        self.bulk_linger_s = 0.0
        #: The watched broker is brought no runs.
        self.divides_runs = False
        self.left_out: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Everything that can be left out."""
        found = [each.name for each in self.faults]
        found += [each.name for each in self.clients if each.bad]
        found += [each.name for each in self.messages]
        if self.epochs:
            found.append("epochs")
        return found

    def without(self, names: Iterable[str]) -> None:
        """Leave things out."""
        gone = {*names}
        self.left_out = tuple(sorted({*self.left_out, *gone}))
        self.faults = [each for each in self.faults if each.name not in gone]
        self.clients = [each for each in self.clients if each.name not in gone]
        self.messages = [each for each in self.messages if each.name not in gone]
        if "epochs" in gone:
            self.epochs = 0

    def use_handler(self, name: str, promise: str) -> None:
        """Let a delivery handler of your own serve the ordinary queues.

        :param name: under which it is registered.
        :param promise: what it keeps: ``once-or-more`` (what it confirms arrives and is answered
            for) or ``none``; any other promise of a queue is not judged.
        """
        for place in self.places:
            place.fleeting = False  # or queues that nobody declares would have the handler
            if place.kind in ORDINARY:
                place.handler = name
                place.promise = promise
        if promise == "none":
            for message in self.messages:
                message.asks = message.asks and self.places[message.place].kind not in ORDINARY

    def described(self) -> list[str]:
        """The plan in lines."""
        lines = [
            (
                f"seed {self.seed}: {'quiet' if self.quiet else 'with faults'},"
                f" {self.duration_s:.1f} s, {self.producers} producers (window {self.window}),"
                f" {len(self.messages)} messages"
            ),
            (
                f"network: up to {self.shape.delay_max * 1000:.1f} ms,"
                f" room {self.shape.room} bytes, {self.shape.splits} of 1000 pieces cut anew"
            ),
            (
                f"server: lateness {self.lateness_s * 1000:.1f} ms, take-over {self.take_over},"
                f" in flight {self.max_in_flight}, work {self.work_per_step},"
                f" memory {self.memory_bytes},"
                f" buffers {self.buffers}"
            ),
        ]
        lines += [f"place: {place!r} ({place.handler}, {place.promise})" for place in self.places]
        lines += [f"client: {each.name} ({each.role})" for each in self.clients]
        if self.epochs:
            lines.append(f"epochs: {self.epochs}")
        if self.bulk_producer >= 0:
            lines.append(
                f"bulk: producer-{self.bulk_producer} gathers for {self.bulk_linger_s} s,"
                f" runs are {'divided' if self.divides_runs else 'taken whole'}"
            )
        lines += [f"fault: {each!r}" for each in self.faults]
        return lines


def draw_plan(seed: int) -> Plan:
    """What a seed stands for."""
    chance = Random(f"{seed}/plan")
    plan = Plan(seed)
    plan.quiet = chance.random() < 0.25
    plan.duration_s = chance.uniform(_SHORTEST_S, _LONGEST_S)
    _draw_world(plan, chance)
    _draw_places(plan, chance)
    _draw_durable_brief(plan)
    _draw_clients(plan, chance)
    _draw_messages(plan, chance)
    _draw_bulk(plan)
    _draw_meddlers(plan)
    _draw_forgers(plan)
    _draw_outside(plan)
    _draw_memory(plan)
    _draw_epochs(plan)
    _draw_fleeting(plan)
    if not plan.quiet:
        _draw_faults(plan, chance)
    return plan


def _draw_world(plan: Plan, chance: Random) -> None:
    slowest = chance.choice((0.002, 0.01, 0.05, 0.2))
    room = chance.choice((512, 2_048, 65_536, 65_536))
    if slowest > 0.05:
        room = 65_536  # or what is in flight would need longer than its acknowledges may take
    plan.shape = Shape(0.0005, slowest, room, chance.choice((0, 100, 500, 900)))
    plan.disk = DiskHabits(0.0005, chance.choice((0.002, 0.02, 0.3)), 0)
    plan.lateness_s = chance.choice((0.0, 0.0, 0.002, 0.05))
    plan.take_over = chance.random() < 0.4
    plan.max_in_flight = chance.choice((10_000, 10_000, 1, 2, 5))
    plan.work_per_step = chance.choice((1_000, 1_000, 3, 10))
    plan.buffers = chance.choice(((262_144, 65_536, 4_194_304), (2_048, 512, 8_192)))
    if room < 65_536 and chance.random() < 0.7:
        plan.buffers = (256, 64, 1_024)
    plan.window = chance.choice((1, 4, 16))


def _draw_places(plan: Plan, chance: Random) -> None:
    kinds = [
        "work",
        "share",
        "saved",
        "polite",
        "retry",
        "told",
        "fan",
        "pull",
        "brief",
        "durable",
        "spill",
    ]
    chosen = chance.sample(kinds, chance.choice((1, 2, 2, 3)))
    for number, kind in enumerate(chosen):
        timeout_s = chance.choice((0.75, 1.5, 3.0))
        if plan.shape.delay_max > 0.05:
            timeout_s = 3.0
        place = _place(kind, f"{kind}-channel", number, timeout_s, chance)
        plan.places.append(place)
        if place.dead_letter is not None:
            channel, queue_id = place.dead_letter
            plan.places.append(
                Place("dead", channel, queue_id, STATUS_ROUND_ROBIN, "putback-end", "none", 1.5)
            )


def _draw_durable_brief(plan: Plan) -> None:
    """Most queues whose messages expire are durable: time-outs outlive the server."""
    own = Random(f"{plan.seed}/brief")
    for place in plan.places:
        if place.kind == "brief" and own.random() < 0.75:
            place.durable = place.saves = True
            place.memory_limit = own.choice((0, 1, 3))


def _place(kind: str, channel: str, number: int, timeout_s: float, chance: Random) -> Place:
    promised = "once-or-more"
    robin = STATUS_ROUND_ROBIN
    if kind == "share":
        return Place(
            kind, channel, number, STATUS_PUSH, "ack-if-asked", promised, timeout_s, exclusive=False
        )
    if kind == "saved":
        return Place(kind, channel, number, robin, "ack-ifsaved", promised, timeout_s, saves=True)
    if kind == "durable":
        status = chance.choice((robin, robin, STATUS_PULL))
        return Place(
            kind, channel, number, status, "ack-if-asked", promised, timeout_s,
            saves=True, durable=True, memory_limit=chance.choice((0, 1, 3)),
        )  # fmt: skip
    if kind == "spill":
        return Place(
            kind, channel, number, robin, "ack-if-asked", promised, timeout_s,
            overflow=True, memory_limit=chance.choice((1, 3)),
        )  # fmt: skip
    if kind == "polite":
        return Place(kind, channel, number, robin, "ack-if-asked", promised, timeout_s, waits=True)
    if kind == "retry":
        handler = chance.choice(("putback-start", "putback-end"))
        limit = chance.choice((1, 2, 4))
        letters = ("dead-channel", number + 100)
        return Place(
            kind, channel, number, robin, handler, "accepted", timeout_s,
            put_back_limit=limit, dead_letter=letters,
        )  # fmt: skip
    if kind == "told":
        return Place(kind, channel, number, robin, "ack-consumer", promised, timeout_s)
    if kind == "fan":
        return Place(
            kind, channel, number, STATUS_BROADCAST, "ack-received", "none", timeout_s,
            acks=chance.random() < 0.5, exclusive=False,
        )  # fmt: skip
    if kind == "pull":
        return Place(kind, channel, number, STATUS_PULL, "ack-if-asked", promised, timeout_s)
    if kind == "brief":
        expiry_s = chance.choice((0.3, 1.0, 4.0))
        return Place(kind, channel, number, robin, "ack-if-asked", "none", timeout_s, expiry_s)
    limit = chance.choice((0, 0, 5))
    return Place(
        kind, channel, number, robin, "ack-if-asked", promised, timeout_s, message_limit=limit
    )


def _draw_clients(plan: Plan, chance: Random) -> None:
    plan.producers = chance.choice((1, 1, 2, 3))
    for number, place in enumerate(plan.places):
        role = "puller" if place.status == STATUS_PULL else "consumer"
        for count in range(chance.choice((1, 1, 2, 3))):
            habits = Habits(work_s=chance.choice((0.0, 0.02, 0.2)))
            if place.kind in ("retry", "told"):
                habits.nack = chance.choice((0, 200, 600))
            name = f"good-{number}-{count}"
            at = 0.0 if chance.random() < 0.7 else chance.random() * plan.duration_s
            plan.clients.append(ClientPlan(name, role, number, habits, at, False))
        if plan.quiet:
            continue
        for kind in ("careless", "slow", "flapping"):
            if place.kind != "dead" and chance.random() < 0.2:
                habits = Habits()
                if kind == "careless":
                    habits.forget = chance.choice((300, 1000))
                elif kind == "slow":
                    habits.pace_s = chance.choice((0.1, 0.4, 5.0))
                else:
                    habits.flap_s = chance.choice((0.3, 2.0))
                name = f"{kind}-{number}"
                at = chance.random() * plan.duration_s
                plan.clients.append(ClientPlan(name, role, number, habits, at, True))
    if not plan.quiet and chance.random() < 0.25:
        for count in range(chance.choice((1, 3))):
            at = chance.random() * plan.duration_s
            plan.clients.append(ClientPlan(f"stranger-{count}", "stranger", 0, Habits(), at, True))


def _draw_bulk(plan: Plan) -> None:
    """Now and then a place that many messages are pushed into at once, so that the server takes
    them as runs, in one go where it can: one consumer with room, who answers in bulk too."""
    own = Random(f"{plan.seed}/bulk")
    if own.random() >= _BULK_SHARE:
        return
    plan.divides_runs = own.random() < 0.2
    plan.bulk_linger_s = own.choice((0.0, 0.005, 0.05))
    plan.bulk_producer = plan.producers
    plan.producers += 1
    narrow = plan.shape.room < 65_536
    if plan.max_in_flight < 10:
        one_by_one = 10_000 if plan.shape.delay_max > 0.05 else plan.max_in_flight
        plan.max_in_flight = own.choice((one_by_one, 25, 10_000, 10_000))
    timeout_s = 3.0 if narrow or plan.shape.delay_max > 0.05 else own.choice((0.75, 1.5, 3.0))
    place = _bulk_place(len(plan.places), timeout_s, own)
    plan.places.append(place)
    _draw_bulk_clients(plan, place, own)
    _draw_bursts(plan, place, narrow, own)


def _bulk_place(number: int, timeout_s: float, own: Random) -> Place:
    sort = own.choice(("work", "durable", "durable", "unanswered", "fan"))
    channel = "bulk-channel"
    if sort == "fan":
        return Place(
            "fan", channel, number, STATUS_BROADCAST, "ack-received", "none", timeout_s,
            acks=False, exclusive=False,
        )  # fmt: skip
    if sort == "unanswered":
        return Place(
            "bulk", channel, number, STATUS_PUSH, "ack-if-asked", "none", timeout_s,
            acks=False, exclusive=False,
        )  # fmt: skip
    durable = sort == "durable"
    handler = own.choice(("ack-if-asked", "ack-if-asked", "ack-ifsaved"))
    return Place(
        "bulk", channel, number, STATUS_PUSH, handler if durable else "ack-if-asked",
        "once-or-more", timeout_s, exclusive=False, saves=durable, durable=durable,
        memory_limit=own.choice((0, 0, 20)) if durable else 0,
    )  # fmt: skip


def _draw_bulk_clients(plan: Plan, place: Place, own: Random) -> None:
    number = len(plan.places) - 1
    for count in range(own.choice((1, 1, 1, 1, 1, 2)) if place.acks else own.choice((1, 2, 3))):
        habits = Habits(
            work_s=own.choice((0.0, 0.0, 0.02, 0.2)),
            nack=own.choice((0, 0, 0, 50)),
            forget=0 if plan.quiet else own.choice((0, 0, 50)),
            bulk_s=own.choice((0.005, 0.05, 0.1)),
        )
        if habits.nack:
            place.promise = "none"  # the default handler takes any answer for the end
        at = 0.0 if own.random() < 0.8 else own.random() * plan.duration_s * 0.5
        plan.clients.append(
            ClientPlan(f"good-{number}-{count}", "consumer", number, habits, at, False)
        )
    if not plan.quiet and own.random() < 0.15:
        habits = own.choice((Habits(flap_s=2.0, bulk_s=0.05), Habits(pace_s=0.1)))
        at = own.random() * plan.duration_s
        plan.clients.append(ClientPlan(f"bulky-{number}", "consumer", number, habits, at, True))


def _draw_bursts(plan: Plan, place: Place, narrow: bool, own: Random) -> None:
    """Messages that come up together, alike in all but what they say."""
    count = own.choice((20, 40) if narrow else (20, 40, 80))
    longest = own.choice((3, 10) if narrow else (3, 10, 40))
    sizes = own.choice(((0, 0), (20, 20), (0, 100) if narrow else (0, 300)))
    first = len(plan.messages)
    left = 0
    at = 0.0
    high = False
    asks = True
    for number in range(first, first + count):
        if not left:
            left = own.randint(2, longest)
            at = own.random() * plan.duration_s * 0.9
            high = own.random() < 0.15
            asks = place.acks or own.random() < 0.5
        left -= 1
        plan.messages.append(
            MessagePlan(
                f"message {number}",
                at,
                plan.bulk_producer,
                len(plan.places) - 1,
                high,
                own.randint(*sizes),
                asks,
            )
        )


def _draw_meddlers(plan: Plan) -> None:
    own = Random(f"{plan.seed}/meddlers")
    if own.random() < 0.2:
        at = own.random() * plan.duration_s * 0.5
        plan.clients.append(ClientPlan("meddler", "meddler", 0, Habits(), at, True))


def _draw_forgers(plan: Plan) -> None:
    own = Random(f"{plan.seed}/forgers")
    if own.random() < 0.15:
        for count in range(2):
            at = own.random() * plan.duration_s * 0.5
            plan.clients.append(ClientPlan(f"forger-{count}", "forger", 0, Habits(), at, True))


def _draw_outside(plan: Plan) -> None:
    """Whether rights are asked about and events told, and who comes without manners."""
    own = Random(f"{plan.seed}/outside")
    # Where each push is asked about, or told of, few are taken in one go.
    plan.guarded = own.random() < 0.25 and plan.bulk_producer < 0
    plan.tells = own.random() < 0.25 and plan.bulk_producer < 0
    if plan.quiet:
        return
    plan.fails = own.random() < 0.05
    for role in RAW_ROLES:
        if own.random() < (0.4 if role == "caller" and plan.guarded else 0.12):
            place = own.randrange(len(plan.places))
            at = own.random() * plan.duration_s * 0.5
            plan.clients.append(ClientPlan(f"{role}-raw", role, place, Habits(), at, True))


def _draw_epochs(plan: Plan) -> None:
    own = Random(f"{plan.seed}/epochs")
    if own.random() < 0.15:
        plan.epochs = own.choice((3, 6, 12))


def _draw_memory(plan: Plan) -> None:
    """Now and then a server that has room for ten messages or so, in all its queues together."""
    own = Random(f"{plan.seed}/memory")
    if own.random() < 0.2:
        plan.memory_bytes = own.choice((6_000, 6_000, 12_000))
        # They would fill it for ever, with queues of their own (seed 1040932).
        plan.clients = [each for each in plan.clients if each.role not in ("stranger", *RAW_ROLES)]


def _draw_fleeting(plan: Plan) -> None:
    """Now and then a channel that is destroyed when it is empty; who comes next makes it anew.

    Its options are those of all queues that nobody declares, so it has no limit, and nobody writes
    epochs, whose queue would be one of them.
    """
    own = Random(f"{plan.seed}/fleeting")
    able = [place for place in plan.places if place.kind in _FLEETING and not place.message_limit]
    if own.random() < _FLEETING_SHARE and able and not plan.epochs:
        own.choice(able).fleeting = True


def _draw_messages(plan: Plan, chance: Random) -> None:
    count = chance.choice((5, 15, 30, 50))
    sizes = chance.choice(((0, 0), (20, 20), (0, 300), (300, 1500)))
    if plan.shape.room < 65_536:
        sizes = chance.choice(((0, 0), (20, 20), (0, 100)))
    highs = chance.choice((0.0, 0.2))
    burst = chance.random() < 0.5
    targets = [number for number, place in enumerate(plan.places) if place.kind != "dead"]
    at = 0.0
    for number in range(count):
        if burst:
            at += 0.0 if chance.random() < 0.9 else chance.random() * plan.duration_s / 5
        else:
            at = chance.random() * plan.duration_s * 0.9
        place = chance.choice(targets)
        # The handlers of retry queues tell nobody.
        asks = plan.places[place].kind != "retry"
        if plan.places[place].kind == "fan":
            asks = chance.random() < 0.5
        plan.messages.append(
            MessagePlan(
                f"message {number}",
                min(at, plan.duration_s * 0.95),
                chance.randrange(plan.producers),
                place,
                chance.random() < highs,
                chance.randint(*sizes),
                asks,
            )
        )


def _draw_faults(plan: Plan, chance: Random) -> None:
    if chance.random() < 0.2:
        plan.disk.fails = chance.choice((50, 300))
    for kind in FAULT_KINDS:
        # A generator for each, so that a new kind leaves the plans as they were.
        own = Random(f"{plan.seed}/{kind}")
        if own.random() >= (0.15 if kind == "clear" else 0.3):
            continue
        for count in range(1 if kind in _ONCE else own.choice((1, 2, 5))):
            lasts_s = own.choice((0.1, 1.0, 5.0))
            if kind == "freeze":
                lasts_s = own.choice((0.5, 5.0, 30.0))
            at = own.random() * plan.duration_s
            plan.faults.append(Fault(f"{kind} {count}", kind, at, lasts_s, own.random()))
            if kind == "disk-full" and plan.epochs:
                # What a failed commit has left behind is found by the next life.
                soon = at + lasts_s + own.random() * 0.2
                plan.faults.append(Fault(f"crash {count} after it", "server-crash", soon, 0.1, 0.0))
