"""The plan of a run: what one seed stands for, before anything happens.

Theory of operation.  A seed is drawn into a plan: the places, the clients, every message with its
time, every fault with its time.  Each seed turns some kinds of faults on and leaves others out, for
faults hide one another; a quarter of the runs is quiet.  What a plan holds bears a name of its own
(``cut 3``, ``message 17``, ``slow-1``): a plan is made smaller by leaving things out.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tmqp.constants import STATUS_BROADCAST, STATUS_PULL, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp.extensions import KEYS_STICKY, KEYS_STRICT
from tmqp_client._core.arguments import Pairs
from tmqp_client._core.requests import terms_headers
from tmqp_sim.bulk_plan import draw_bulk, draw_mixed
from tmqp_sim.clients import FORGERS
from tmqp_sim.consumers import Habits
from tmqp_sim.disk import DiskHabits
from tmqp_sim.extra_plan import (
    draw_address,
    draw_cells,
    draw_epochs,
    draw_fleeting,
    draw_foreign,
    draw_memory,
    draw_moves,
    draw_patience,
    draw_rates,
    draw_retuners,
    draw_scrapers,
    draw_web,
    draw_web_sockets,
)
from tmqp_sim.history import Place
from tmqp_sim.network import Shape
from tmqp_sim.planned import ORDINARY, ClientPlan, Fault, MessagePlan, Plan
from tmqp_sim.queue_plan import (
    draw_burials,
    draw_doors,
    draw_durable,
    draw_exclusive,
    draw_feeds,
    draw_listeners,
    draw_quotas,
    draw_ranks,
    draw_removals,
    draw_removed,
    draw_returns,
    draw_shelves,
    draw_shifts,
    draw_single,
    draw_skips,
)
from tmqp_sim.raw import RAW_ROLES, RAW_SHARES
from tmqp_sim.sprayers import SPRAYER

__all__ = ["FAULT_KINDS", "ORDINARY", "ClientPlan", "Fault", "MessagePlan", "Plan", "draw_plan"]

#: The kinds of faults, and what each does.
FAULT_KINDS: Final[dict[str, str]] = {
    "cut": "a connection is reset",
    "half-open": "a connection ends without notice to either side",
    "silence": "one direction of a connection is silent for a while",
    "swizzle": "connections fall silent one by one and recover in another order",
    "clog": "everything takes longer for a while",
    "client-crash": "a client loses its memory and restarts",
    "freeze": "the server's process is suspended",
    "server-crash": "the server loses its memory and restarts with the data on disk",
    "stop": "the server closes every connection politely",
    "restart": "the server stops cleanly and restarts",
    "disk-full": "no batch can be written for a while",
    "pause-queue": "a queue is paused and resumed later",
    "credit": "a consumer with a small credit joins and grants more at intervals",
    "single": "a channel with exclusive consumers serves all of them for a while",
    "clock": "the wall clock jumps by an hour",
    "clear": "the waiting messages of a queue are cleared",
    "busy": "the server's process is busy for a moment, again and again",
    "flood": "a thousand addresses connect and disconnect, if rates are limited",
    "reload": "fewer connections are accepted for a while, and other rates apply",
}
#: How likely each is in a plan with faults, if that differs from most.
_LIKELY: Final = 0.3
_LIKELIHOODS: Final = {"clear": 0.15, "busy": 0.04, "reload": 0.05}
#: How often something happens, and how often the process is busy: ten times a minute is logged.
_COUNTS: Final = (1, 2, 5)
_BUSY_COUNTS: Final = (2, 6, 40)
#: Faults that happen at most once in a run.
_ONCE: Final = ("flood", "clear", "freeze", "server-crash", "stop", "restart", "credit")
#: Runs in which datagrams come from many addresses.
_SPRAYED_SHARE: Final = 0.06
#: Runs in which messages are deferred.
_DEFERRED_SHARE: Final = 0.15
#: How many plans have clients with channels of their own.
_TENANTS_SHARE: Final = 0.06
#: Runs in which the consumers of a queue choose.
_FILTERS_SHARE: Final = 0.15
#: Runs in which the messages of a queue have keys.
_KEYS_SHARE: Final = 0.12
#: The end of the phase with faults, in seconds.
_SHORTEST_S: Final = 6.0
_LONGEST_S: Final = 20.0


def draw_plan(seed: int) -> Plan:
    """What a seed stands for."""
    chance = Random(f"{seed}/plan")
    plan = Plan(seed)
    plan.quiet = chance.random() < 0.25
    plan.duration_s = chance.uniform(_SHORTEST_S, _LONGEST_S)
    _draw_world(plan, chance)
    _draw_places(plan, chance)
    draw_durable(plan)
    _draw_clients(plan, chance)
    _draw_messages(plan, chance)
    draw_burials(plan)
    draw_bulk(plan)
    _draw_uninvited(plan)
    _draw_outside(plan)
    _draw_datagrams(plan)
    draw_memory(plan)
    draw_epochs(plan)
    draw_fleeting(plan)
    draw_web(plan)
    draw_foreign(plan)
    _draw_releases(plan)
    draw_listeners(plan)
    draw_returns(plan)
    _draw_filters(plan)
    _draw_keys(plan)
    draw_exclusive(plan)
    draw_quotas(plan)
    _draw_deferred(plan)
    draw_shelves(plan)
    draw_removed(plan)
    _draw_tenants(plan)
    draw_moves(plan)
    draw_feeds(plan)
    draw_removals(plan)
    draw_shifts(plan)
    draw_doors(plan)
    draw_mixed(plan)
    draw_ranks(plan)
    draw_single(plan)
    draw_skips(plan)
    draw_web_sockets(plan)
    draw_scrapers(plan)
    draw_rates(plan)
    draw_cells(plan)
    draw_retuners(plan)
    draw_address(plan)
    if not plan.quiet:
        _draw_faults(plan, chance)
        draw_patience(plan)
    return plan


def _draw_world(plan: Plan, chance: Random) -> None:
    slowest = chance.choice((0.002, 0.01, 0.05, 0.2))
    room = chance.choice((512, 2_048, 65_536, 65_536))
    if slowest > 0.05:
        room = 65_536  # or what is in flight would need longer than its acknowledgements may take
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


def _draw_tenants(plan: Plan) -> None:
    """Some clients have channels that end with them, with their consumers, or unused."""
    own = Random(f"{plan.seed}/tenants")
    if own.random() >= _TENANTS_SHARE or plan.is_narrow:
        return  # what they leave in their queues would take the room of others (seed 2299)
    for number in range(own.choice((1, 2, 4))):
        role = own.choice(("tenant-owner", "tenant-consumers", "tenant-idle", "tenant-full"))
        _comes(plan, own, f"tenant-{number}", role)


def _draw_releases(plan: Plan) -> None:
    """Let some consumers give messages back."""
    own = Random(f"{plan.seed}/releases")
    if plan.quiet or own.random() >= 0.12:
        return
    for client in plan.clients:
        if client.role in ("consumer", "puller"):
            client.habits.give_back = own.choice((0, 100, 400))
            client.habits.extend = own.choice((0, 0, 300))
            client.habits.terms = _draw_terms(own)


def _draw_terms(own: Random) -> Pairs:
    """What a consumer wants of its subscription; most want nothing."""
    if own.random() < 0.4:
        return ()
    window = own.choice((None, None, 1, 2, 5))
    # Not for ever: who forgets a message would have it until the end (seeds 1669 and 3744).
    wait_s = own.choice((None, None, 0.4, 4.0, 4.0))
    returns = own.choice((None, None, "front", "end"))
    return terms_headers(window, None, wait_s, returns, own.choice((None, None, 1)))


def _draw_filters(plan: Plan) -> None:
    """Let the consumers of a queue choose by the kinds of its messages; together they take all."""
    own = Random(f"{plan.seed}/filters")
    places = [
        number
        for number, place in enumerate(plan.places)
        if place.status == STATUS_ROUND_ROBIN and place.kind not in ("dead", "brief")
    ]
    if own.random() >= _FILTERS_SHARE or not places or plan.epochs or plan.web_producer >= 0:
        return
    chosen = own.choice(places)
    place = plan.places[chosen]
    place.kinds = own.choice((2, 3))
    for client in plan.clients:
        if client.place == chosen and client.role == "consumer":
            wanted = own.randrange(-1, place.kinds)
            client.habits.filter = None if wanted < 0 else f"kind=k{wanted}"
    for kind in range(place.kinds):
        habits = Habits(work_s=own.choice((0.0, 0.02, 0.2)))
        habits.filter = f"kind=k{kind}"
        at = 0.0 if own.random() < 0.4 else own.random() * plan.duration_s
        name = f"good-{chosen}-kind-{kind}"
        plan.clients.append(ClientPlan(name, "consumer", chosen, habits, at, False))


def _draw_keys(plan: Plan) -> None:
    """Let the messages of a queue have keys, of which some have none, and let those count."""
    own = Random(f"{plan.seed}/keys")
    places = [
        number
        for number, place in enumerate(plan.places)
        if place.status == STATUS_ROUND_ROBIN
        and place.kind not in ("dead", "bulk")
        and not place.kinds
    ]
    if own.random() >= _KEYS_SHARE or not places or plan.epochs or plan.web_producer >= 0:
        return
    chosen = own.choice(places)
    place = plan.places[chosen]
    place.keys = own.choice((KEYS_STICKY, KEYS_STICKY, KEYS_STRICT))
    place.groups = own.choice((1, 2, 5, 20))
    for count in range(0 if plan.quiet else own.choice((0, 1, 2))):
        habits = Habits(work_s=own.choice((0.02, 0.2, 0.5)), flap_s=own.choice((0.3, 2.0)))
        at = own.random() * plan.duration_s * 0.5
        name = f"restless-{chosen}-{count}"
        plan.clients.append(ClientPlan(name, "consumer", chosen, habits, at, True))


def _draw_deferred(plan: Plan) -> None:
    """Let some messages wait for their time, or be cancelled, and receivers be counted."""
    own = Random(f"{plan.seed}/deferred")
    plan.counts = own.random() < 0.1
    if own.random() >= _DEFERRED_SHARE:
        return
    share = own.choice((0.1, 0.4, 1.0))
    cancelled = own.choice((0.0, 0.3, 0.8))
    for message in plan.messages:
        if message.producer in (plan.bulk_producer, plan.web_producer) or own.random() >= share:
            continue
        message.delay_s = own.choice((0.05, 0.4, 1.0, 2.5))
        # What a queue for dead letters has taken in must be dealt with.
        if plan.places[message.place].promise != "accepted" and own.random() < cancelled:
            message.cancel_s = own.choice((0.0, 0.1, 1.0))
            message.asks = True


def _comes(plan: Plan, own: Random, name: str, role: str, place: int = 0) -> None:
    """Somebody who is not judged comes in the first half."""
    at = own.random() * plan.duration_s * 0.5
    plan.clients.append(ClientPlan(name, role, place, Habits(), at, True))


def _draw_uninvited(plan: Plan) -> None:
    own = Random(f"{plan.seed}/meddlers")
    if own.random() < 0.2:
        _comes(plan, own, "meddler", "meddler")
    own = Random(f"{plan.seed}/viewers")
    if own.random() < 0.15:
        _comes(plan, own, "viewer", "viewer")
    own = Random(f"{plan.seed}/overseers")
    if own.random() < 0.15:
        _comes(plan, own, "overseer", "overseer")
    own = Random(f"{plan.seed}/forgers")
    if own.random() < 0.15:
        for count in range(2):
            _comes(plan, own, f"{FORGERS}{count}", "forger")
        plan.trusting = own.random() < 0.4


def _draw_outside(plan: Plan) -> None:
    """Whether rights are asked about and events told, and who comes without manners."""
    own = Random(f"{plan.seed}/outside")
    # Where each push is asked about, or told of, few are taken together.
    plan.guarded = own.random() < 0.25 and plan.bulk_producer < 0
    plan.tells = own.random() < 0.25 and plan.bulk_producer < 0
    if plan.quiet:
        return
    plan.fails = own.random() < 0.05
    for role in RAW_ROLES:
        if own.random() < (0.4 if role == "caller" and plan.guarded else RAW_SHARES[role]):
            _comes(plan, own, f"{role}-raw", role, own.randrange(len(plan.places)))


def _draw_datagrams(plan: Plan) -> None:
    own = Random(f"{plan.seed}/datagrams")
    if own.random() < _SPRAYED_SHARE and not plan.quiet:
        _comes(plan, own, SPRAYER, SPRAYER)


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
        kind = plan.places[place].kind
        # The handlers of retry queues tell nobody.
        asks = chance.random() < 0.5 if kind == "fan" else kind != "retry"
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
        if kind == "single" and not any(place.single for place in plan.places):
            continue
        if kind == "flood" and plan.rates is None:
            continue
        often = kind == "reload" and plan.rates is not None
        if own.random() >= (_LIKELY if often else _LIKELIHOODS.get(kind, _LIKELY)):
            continue
        counts = _BUSY_COUNTS if kind == "busy" else _COUNTS
        for count in range(1 if kind in _ONCE else own.choice(counts)):
            lasts_s = own.choice((0.1, 1.0, 5.0))
            if kind == "freeze":
                lasts_s = own.choice((0.5, 5.0, 30.0))
            at = own.random() * plan.duration_s
            plan.faults.append(Fault(f"{kind} {count}", kind, at, lasts_s, own.random()))
            if kind == "disk-full" and plan.epochs:
                # What a failed commit has left behind is found by the next life.
                soon = at + lasts_s + own.random() * 0.2
                plan.faults.append(Fault(f"crash {count} after it", "server-crash", soon, 0.1, 0.0))
