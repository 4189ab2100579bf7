"""What each kind of fault does to the world when its time has come."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from tmqp.constants import STATUS_PAUSED
from tmqp_server.shell.rates import RateLimits
from tmqp_sim.clients import SimClient
from tmqp_sim.disk import Disk
from tmqp_sim.history import Place
from tmqp_sim.network import CUT_NOTICE_S, Link
from tmqp_sim.operators import Operator
from tmqp_sim.plan import Fault, Plan
from tmqp_sim.speakers import Speaker
from tmqp_sim.stage import Stage

__all__ = ["Target", "inject"]

#: How often a consumer with a credit grants more, in seconds.
_GRANT_EVERY_S: Final = 0.5
_CLOCK_JUMP_S: Final = 3_600.0
#: How many connections are let in when these are few, in all and of one host.
_FEW: Final = ((50, 1), (12, 2), (8, 1))
#: How many times as high other rates are; none with 0.
_SCALES: Final = (0.0, 0.5, 2.0)
#: How long a turn of the event loop takes at most, when that is not quick.
_LONGEST_TURN_S: Final = 0.4
#: How many of the restarts begin with a drain, and how long that takes at most, in seconds.
_DRAINED: Final = 0.2
_DRAIN_S: Final = 1.5
_LONG_DRAIN_S: Final = 12.0
#: Kinds of queues that may be cleared, and that may be paused.
_CLEARED: Final = ("work", "share", "saved", "durable", "spill", "pull", "bulk")
_PAUSED: Final = ("work", "share", "saved", "spill", "polite", "bulk")


class Target(Stage, Protocol):
    """One run, as faults see it."""

    plan: Plan
    disk: Disk
    operator: Operator

    @property
    def clients(self) -> list[SimClient]: ...

    def crash_server(self) -> None: ...

    def stop_server(self, life: int) -> None: ...

    def free_disk(self) -> None: ...

    def resume_queue(self, place: Place) -> None: ...


def inject(simulation: Target, fault: Fault) -> None:
    """Let a fault happen."""
    if simulation.healed:
        return
    simulation.world.note("fault", repr(fault))
    if _INJECTORS[fault.kind](simulation, fault):
        simulation.world.mark(f"fault: {fault.kind}")


def _victim(simulation: Target, fault: Fault) -> Link | None:
    links = simulation.network.living()
    return links[int(fault.pick * len(links))] if links else None


def _cut(simulation: Target, fault: Fault) -> bool:
    link = _victim(simulation, fault)
    if link is None:
        return False
    first = CUT_NOTICE_S * fault.pick
    if fault.lasts_s > 0.5:
        link.cut(first, 0.0)
    else:
        link.cut(0.0, first)
    return True


def _half_open(simulation: Target, fault: Fault) -> bool:
    link = _victim(simulation, fault)
    if link is None:
        return False
    link.dead = True
    owner = link.client.owner
    if link.client.closed and isinstance(owner, Speaker):
        owner.forget(link)  # it has closed, and that does not arrive any more (seed 33907)
    return True


def _silence(simulation: Target, fault: Fault) -> bool:
    link = _victim(simulation, fault)
    if link is None:
        return False
    pipe = link.up if int(fault.pick * 1000) % 2 else link.down
    pipe.silent = True
    simulation.world.after(fault.lasts_s, pipe.speak)
    return True


def _swizzle(simulation: Target, fault: Fault) -> bool:
    links = simulation.network.living()
    chance = simulation.world.child(fault.name)
    world = simulation.world
    for number, link in enumerate(links):
        world.after(0.05 * number, _hush, simulation, link)
    chance.shuffle(links)
    for number, link in enumerate(links):
        when = fault.lasts_s + 0.05 * (len(links) + number)
        world.after(when, link.up.speak)
        world.after(when, link.down.speak)
    return bool(links)


def _hush(simulation: Target, link: Link) -> None:
    if not simulation.healed:
        link.up.silent = True
        link.down.silent = True


def _clog(simulation: Target, fault: Fault) -> bool:
    links = simulation.network.living()
    for link in links:
        for pipe in (link.up, link.down):
            pipe.clogged_by = fault.pick
    simulation.world.after(fault.lasts_s, _unclog, links)
    return bool(links)


def _unclog(links: list[Link]) -> None:
    for link in links:
        link.up.clogged_by = 0.0
        link.down.clogged_by = 0.0


def _client_crash(simulation: Target, fault: Fault) -> bool:
    clients = [client for client in simulation.clients if client.end is not None]
    if not clients:
        return False
    clients[int(fault.pick * len(clients))].crash(silently=fault.lasts_s > 0.5)
    return True


def _freeze(simulation: Target, fault: Fault) -> bool:
    if not simulation.server.up or simulation.server.asleep:
        return False
    left = simulation.plan.duration_s - simulation.world.now
    simulation.server.freeze(min(fault.lasts_s, max(left, 0.01)))
    return True


def _busy(simulation: Target, fault: Fault) -> bool:
    """A turn of the event loop takes long, or a little longer than most."""
    if not simulation.server.up or simulation.server.asleep:
        return False
    simulation.server.freeze(_LONGEST_TURN_S * fault.pick)
    return True


def _flood(simulation: Target, fault: Fault) -> bool:
    """Many come and go, each from an address of its own: none of them is remembered for ever."""
    server = simulation.server
    if not server.up or server.asleep or not server.listens:
        return False
    server.hear(server.paces.flood)
    return True


def _reload(simulation: Target, fault: Fault) -> bool:
    """Another configuration holds for a while: fewer connections, and rates, if there are some."""
    server = simulation.server
    if not server.up or server.asleep:
        return False
    most, per_host = _FEW[int(fault.pick * len(_FEW))]
    server.admission.limit_to(most, per_host)
    rates = simulation.plan.rates
    if rates is not None:
        scale = _SCALES[int(fault.pick * 1_000) % len(_SCALES)]
        server.hear(partial(server.paces.reload, _scaled(rates, scale)))
    simulation.world.after(fault.lasts_s, _reload_again, simulation, server.lives)
    return True


def _reload_again(simulation: Target, life: int) -> None:
    server = simulation.server
    if not server.up or server.lives != life:
        return
    server.admission.limit_to()
    rates = simulation.plan.rates
    if rates is not None:
        server.hear(partial(server.paces.reload, rates))


def _scaled(rates: RateLimits, scale: float) -> RateLimits:
    """All rates so many times as high; none with 0."""
    scaled = RateLimits(
        rates.client_messages * scale,
        rates.client_bytes * scale,
        rates.address_messages * scale,
        rates.address_bytes * scale,
        rates.address_connections * scale,
        rates.burst_s,
    )
    scaled.exempt = rates.exempt
    return scaled


def _server_crash(simulation: Target, fault: Fault) -> bool:
    server = simulation.server
    if not server.up:
        return False
    simulation.crash_server()
    simulation.world.after(min(fault.lasts_s, 1.0), server.start)
    return True


def _stop(simulation: Target, fault: Fault) -> bool:
    server = simulation.server
    if not server.up or server.asleep:
        return False
    server.close_sessions("the server stops")
    return True


def _restart(simulation: Target, fault: Fault) -> bool:
    server = simulation.server
    if not server.up or server.asleep:
        return False
    life = server.lives

    def go() -> None:
        simulation.world.after(0.3, simulation.stop_server, life)
        simulation.world.after(0.3 + min(fault.lasts_s, 1.0), server.start)

    if fault.pick < _DRAINED:
        bound_s = _DRAIN_S if fault.pick < 0.75 * _DRAINED else _LONG_DRAIN_S
        # Some are asked to drain first, and to stop when they do, or have.
        stops = fault.pick > 0.4 * _DRAINED
        asks = simulation.operator.drain if int(fault.pick * 1_000) % 2 else None
        server.drain(bound_s, go, stops=stops, asks=asks)
        if not stops or fault.pick > 0.9 * _DRAINED:
            later_s = fault.lasts_s * 0.4
            simulation.world.after(later_s, _stop_drained, simulation, bound_s, go, life)
    else:
        server.stop("the server stops")
        go()
    return True


def _stop_drained(simulation: Target, bound_s: float, go: Callable[[], None], life: int) -> None:
    """A server that drains, or has drained, is asked to stop."""
    server = simulation.server
    if not server.up or server.lives != life:
        return
    if server.asleep:
        simulation.world.after(0.1, _stop_drained, simulation, bound_s, go, life)
    else:
        server.drain(bound_s, go)


def _disk_full(simulation: Target, fault: Fault) -> bool:
    if fault.pick < 0.4:
        simulation.disk.full_for_messages = True
    else:
        simulation.disk.full = True
    simulation.world.after(fault.lasts_s, simulation.free_disk)
    return True


def _pause_queue(simulation: Target, fault: Fault) -> bool:
    places = [place for place in simulation.places.values() if place.kind in _PAUSED]
    if not places or not simulation.server.up or simulation.server.asleep:
        return False
    place = places[int(fault.pick * len(places))]
    simulation.operator.change_status(place, STATUS_PAUSED)
    simulation.world.after(fault.lasts_s, simulation.resume_queue, place)
    return True


def _credit(simulation: Target, fault: Fault) -> bool:
    """A subscription with a credit takes its share of a broadcast, and no more than it granted."""
    places = [place for place in simulation.places.values() if place.kind == "fan"]
    if not places or not simulation.server.up or simulation.server.asleep:
        return False
    place = places[0]
    simulation.operator.join(place, 1)
    simulation.world.after(_GRANT_EVERY_S, _grant, simulation, place, simulation.server.lives)
    return True


def _grant(simulation: Target, place: Place, life: int) -> None:
    server = simulation.server
    if simulation.healed or not server.up or server.lives != life:
        return
    if not server.asleep:
        simulation.operator.grant(place, 2)
    simulation.world.after(_GRANT_EVERY_S, _grant, simulation, place, life)


def _single(simulation: Target, fault: Fault) -> bool:
    """A channel where one consumer takes everything lets all of them for a while."""
    channels = [place.channel for place in simulation.places.values() if place.single]
    if not channels or not simulation.server.up or simulation.server.asleep:
        return False
    channel = channels[int(fault.pick * len(channels))]
    simulation.operator.let_one_take(channel, False)
    simulation.world.after(fault.lasts_s, _single_again, simulation, channel)
    return True


def _single_again(simulation: Target, channel: str) -> None:
    server = simulation.server
    if server.up and not server.asleep:
        simulation.operator.let_one_take(channel, True)


def _clock(simulation: Target, fault: Fault) -> bool:
    """Nothing but what people read may follow the wall clock."""
    simulation.disk.clock_error_s += _CLOCK_JUMP_S if fault.pick < 0.5 else -_CLOCK_JUMP_S
    return True


def _clear(simulation: Target, fault: Fault) -> bool:
    places = [place for place in simulation.places.values() if place.kind in _CLEARED]
    if not places or not simulation.server.up or simulation.server.asleep:
        return False
    place = places[int(fault.pick * len(places))]
    simulation.operator.clear(place)
    simulation.history.excuse(place)
    return True


_INJECTORS: Final[dict[str, Callable[[Target, Fault], bool]]] = {
    "cut": _cut,
    "half-open": _half_open,
    "silence": _silence,
    "swizzle": _swizzle,
    "clog": _clog,
    "client-crash": _client_crash,
    "freeze": _freeze,
    "server-crash": _server_crash,
    "stop": _stop,
    "restart": _restart,
    "disk-full": _disk_full,
    "pause-queue": _pause_queue,
    "credit": _credit,
    "single": _single,
    "clock": _clock,
    "clear": _clear,
    "busy": _busy,
    "flood": _flood,
    "reload": _reload,
}
