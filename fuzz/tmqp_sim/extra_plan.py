"""What some plans have beside the ordinary: little memory, fleeting channels, movers, other doors.

Each is drawn from a stream of its own, so that what is added here leaves all other plans as they
were.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tmqp.constants import STATUS_PULL
from tmqp_server.shell.rates import RateLimits, read_networks
from tmqp_sim.consumers import Habits
from tmqp_sim.paces import EXEMPT
from tmqp_sim.planned import ClientPlan, Plan
from tmqp_sim.raw import RAW_ROLES
from tmqp_sim.sprayers import SPRAYER

__all__ = [
    "draw_address",
    "draw_cells",
    "draw_epochs",
    "draw_fleeting",
    "draw_foreign",
    "draw_memory",
    "draw_moves",
    "draw_patience",
    "draw_rates",
    "draw_retuners",
    "draw_scrapers",
    "draw_web",
    "draw_web_sockets",
]

#: How many of the plans have a channel that is destroyed when it is empty, and of which kinds.
_FLEETING_SHARE: Final = 0.25
_FLEETING: Final = ("work", "saved", "durable", "spill", "brief", "pull")
_FILLING_ROLES: Final = ("stranger", SPRAYER, *RAW_ROLES)
#: Runs in which somebody speaks HTTP, of each kind.
_WEB_SHARE: Final = 0.2
#: Runs in which clients of TMQP come by WebSocket, and how many of them do.
_WEB_SOCKETS_SHARE: Final = 0.05
_BY_WEB_SOCKET: Final = 0.5
#: Runs in which clients come in by a door of another kind.
_FOREIGN_SHARE: Final = 0.1
#: Runs in which somebody reads the metrics, and logs in as a browser does.
_SCRAPED_SHARE: Final = 0.06
#: Runs in which clients keep counters and values, and in which the feeds of a queue are listed.
_CELLS_SHARE: Final = 0.07
_LISTED_SHARE: Final = 0.5
#: Runs in which consumers change their terms, and how many of them do.
_RETUNED_SHARE: Final = 0.08
_RETUNES: Final = 0.7
#: Runs in which a disk that is only slow counts as one that fails, and from when on.
_IMPATIENT_SHARE: Final = 0.08
_PATIENCE_S: Final = 0.2
#: Of the runs in which rights are asked about, those in which all come from one address.
_ONE_ADDRESS: Final = 0.3
_ADDRESS: Final = "198.51.100.7"
#: Runs in which clients may send only so fast.
_RATED_SHARE: Final = 0.12


def draw_epochs(plan: Plan) -> None:
    """Now and then somebody writes epochs."""
    own = Random(f"{plan.seed}/epochs")
    if own.random() < 0.15:
        plan.epochs = own.choice((3, 6, 12))


def draw_memory(plan: Plan) -> None:
    """Now and then a server that has room for ten messages or so."""
    own = Random(f"{plan.seed}/memory")
    if own.random() < 0.2:
        plan.memory_bytes = own.choice((6_000, 6_000, 12_000))
        # They would fill it for ever, with queues of their own (seed 1040932).
        plan.clients = [each for each in plan.clients if each.role not in _FILLING_ROLES]


def draw_fleeting(plan: Plan) -> None:
    """Now and then a channel that is destroyed when it is empty; who comes next makes it again.

    Its options are those of all queues that nobody declares, so it has no limit, and nobody writes
    epochs, whose queue would be one of them.
    """
    own = Random(f"{plan.seed}/fleeting")
    able = [place for place in plan.places if place.kind in _FLEETING and not place.message_limit]
    if own.random() < _FLEETING_SHARE and able and not plan.epochs:
        own.choice(able).fleeting = True


def draw_moves(plan: Plan) -> None:
    """Now and then somebody moves items in batches, unless its queues would be fleeting ones, or
    what was moved would fill the memory for ever (seeds 885, 1496 and 2493)."""
    own = Random(f"{plan.seed}/moves")
    able = not plan.is_narrow and not any(place.fleeting for place in plan.places)
    if own.random() < 0.15 and able:
        plan.moves = own.choice((4, 10, 25))


def draw_web(plan: Plan) -> None:
    """Now and then somebody publishes by HTTP, and somebody takes messages so."""
    own = Random(f"{plan.seed}/web")
    if own.random() < _WEB_SHARE:
        plan.web_producer = own.randrange(plan.producers)
        if plan.web_producer == plan.bulk_producer:
            plan.web_producer = -1
    if plan.quiet:
        return
    for number, place in enumerate(plan.places):
        if place.status == STATUS_PULL and own.random() < _WEB_SHARE:
            habits = Habits(work_s=own.choice((0.0, 0.02, 0.2)), forget=own.choice((0, 0, 300)))
            at = own.random() * plan.duration_s * 0.5
            plan.clients.append(ClientPlan(f"web-{number}", "web-puller", number, habits, at, True))


def draw_web_sockets(plan: Plan) -> None:
    """Now and then some producers and consumers come by WebSocket."""
    own = Random(f"{plan.seed}/by web socket")
    if own.random() < _WEB_SOCKETS_SHARE:
        able = [f"producer-{n}" for n in range(plan.producers) if n != plan.web_producer]
        able += [each.name for each in plan.clients if each.role in ("consumer", "puller")]
        plan.web_sockets = tuple([name for name in able if own.random() < _BY_WEB_SOCKET])


def draw_foreign(plan: Plan) -> None:
    """Now and then some clients, or all, come in by a door of another kind."""
    own = Random(f"{plan.seed}/foreign")
    if own.random() < _FOREIGN_SHARE:
        plan.foreign = own.choice((300, 500, 800, 1000))


def draw_scrapers(plan: Plan) -> None:
    """Now and then somebody watches the server by HTTP."""
    own = Random(f"{plan.seed}/scrapers")
    if own.random() < _SCRAPED_SHARE:
        plan.scrapers = own.choice((1, 1, 2))


def draw_rates(plan: Plan) -> None:
    """Now and then clients are slowed down that send fast, unless there are some whose patience
    would not bear it."""
    own = Random(f"{plan.seed}/rates")
    impatient = plan.guarded or plan.bulk_producer >= 0 or plan.has_sides
    if own.random() >= _RATED_SHARE or impatient:
        return
    plan.rates = RateLimits(
        client_messages=own.choice((20.0, 60.0)),
        client_bytes=own.choice((10_000.0, 40_000.0)),
        address_bytes=own.choice((20_000.0, 60_000.0)),
        burst_s=own.choice((0.1, 0.3, 1.0)),
    )
    plan.rates.address_connections = own.choice((0.0, 4.0, 10.0))
    _draw_other_rates(plan.rates, Random(f"{plan.seed}/other rates"))


def _draw_other_rates(rates: RateLimits, own: Random) -> None:
    """Half of these limit only some of it, or messages of addresses, or have addresses of all
    kinds."""
    if own.random() < 0.25:
        rates.exempt = read_networks(EXEMPT)
    if own.random() < 0.25:
        rates.address_messages = own.choice((2.0, 6.0))
    if own.random() < 0.25:
        setattr(rates, own.choice(("client_messages", "client_bytes", "address_bytes")), 0.0)


def draw_cells(plan: Plan) -> None:
    """Now and then somebody keeps counters and values, unless what is left of them would fill the
    memory; and somebody whose queue feeds others lists these feeds."""
    own = Random(f"{plan.seed}/cells")
    if own.random() < _CELLS_SHARE and not plan.is_narrow:
        plan.cells = own.choice((20, 60))
    own = Random(f"{plan.seed}/feeds are listed")
    plan.fed_looks = bool(plan.feeds) and own.random() < _LISTED_SHARE


def draw_retuners(plan: Plan) -> None:
    """Let some consumers change their terms and grant credit as long as they are there."""
    own = Random(f"{plan.seed}/tunes")
    if plan.quiet or own.random() >= _RETUNED_SHARE:
        return
    for client in plan.clients:
        if client.role == "consumer" and own.random() < _RETUNES:
            client.habits.retune_s = own.choice((0.2, 0.5, 2.0))


def draw_address(plan: Plan) -> None:
    """Now and then all clients of TMQP come from one address, and some are not let in: the others
    wait for the pauses of these."""
    own = Random(f"{plan.seed}/all of one address")
    if plan.quiet or not plan.guarded or plan.has_sides or own.random() >= _ONE_ADDRESS:
        return
    plan.shared_address = _ADDRESS
    for number in range(own.choice((1, 2, 3))):
        at = own.random() * plan.duration_s * 0.7
        name = f"impostor-{number}"
        plan.clients.append(ClientPlan(name, "impostor", 0, Habits(), at, True))


def draw_patience(plan: Plan) -> None:
    """Now and then a write that takes long counts as one that fails, as where others keep the
    log; unless the process is suspended, for then a push may wait for room until it continues (seed
    6072)."""
    own = Random(f"{plan.seed}/impatience")
    stands_still = any(fault.kind in ("freeze", "busy") for fault in plan.faults)
    if own.random() < _IMPATIENT_SHARE and not stands_still:
        plan.disk.sync_max_s = 0.3
        plan.patience_s = _PATIENCE_S
