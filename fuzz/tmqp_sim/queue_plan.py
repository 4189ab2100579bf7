"""What a plan draws about single queues: which of some kinds are durable, quotas, messages that are
removed while they wait, how much of what is deferred stays in memory, who takes the messages, which
of them go first, and queues that feed others, those of NSQ's clients among them."""

from __future__ import annotations

from random import Random
from typing import Final

from tmqp.constants import STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp.extensions import (
    HEADER_CONSUMER_PRIORITY,
    HEADER_EXCLUSIVE,
    HEADER_TELL_LAPSED,
    HEADER_WINDOW,
)
from tmqp_server.doors.letter import REGULAR_PRIORITY
from tmqp_server.engine.options import TEN
from tmqp_sim.planned import Plan

__all__ = [
    "draw_burials",
    "draw_doors",
    "draw_durable",
    "draw_exclusive",
    "draw_feeds",
    "draw_listeners",
    "draw_quotas",
    "draw_ranks",
    "draw_removals",
    "draw_removed",
    "draw_returns",
    "draw_shelves",
    "draw_shifts",
    "draw_single",
    "draw_skips",
]

#: Runs in which messages are given back faster than the disk writes.
_RETURNS_SHARE: Final = 0.16
#: Runs in which messages are removed while they wait.
_REMOVED_SHARE: Final = 0.15
#: Runs in which queues have quotas of the disk; of queues with at most so many messages, for each
#: that is refused is pushed again.
_QUOTAS_SHARE: Final = 0.2
_MOST_WITH_QUOTA: Final = 60
#: What a queue only saves if there is room stays in memory otherwise (F103) and is delivered too,
#: so each repetition makes it longer, and of more messages these pile up (seed 8430).
_MOST_SAVED_WITH_QUOTA: Final = 20
#: Runs in which a queue feeds others; of these, runs in which one of the feeds has a filter, for
#: without one pushes in a row pass whole; and which of the queues are durable.
_FEEDS_SHARE: Final = 0.125
_FILTERS_SHARE: Final = 0.6
_FED_KINDS: Final = ("durable", "durable", "targets", "memory", "memory", "mixed")
#: Runs in which clients speak NSQ.
_NSQ_SHARE: Final = 0.12
#: Runs in which groups of channels are removed.
_REMOVALS_SHARE: Final = 0.08
_SHIFTS_SHARE: Final = 0.04
#: Runs in which consumers of a queue want all of it, each alone.
_EXCLUSIVE_SHARE: Final = 0.08
#: Runs in which a channel has one consumer at a time, and in which ten priorities count.
_SINGLE_SHARE: Final = 0.06
_RANKS_SHARE: Final = 0.08
#: Runs in which slow consumers of a push queue miss messages.
_SKIPS_SHARE: Final = 0.1
#: More than any client has in flight.
_ANY_NUMBER: Final = 1_000
#: And how many speak Throttr.
_THROTTR_SHARE: Final = 0.06
#: And how many have sockets of ZeroMQ.
_ZMTP_SHARE: Final = 0.16
#: And how many clients of Simple MQ, or of goMS.
_SMQ_SHARE: Final = 0.08
_GOMS_SHARE: Final = 0.08
#: And how many clients of STOMP or OpenWire.
_JMS_SHARE: Final = 0.12


def draw_exclusive(plan: Plan) -> None:
    """Let some consumers of a queue be exclusive, one of them at times of a higher priority."""
    own = Random(f"{plan.seed}/exclusive")
    places = [
        number
        for number, place in enumerate(plan.places)
        if place.status == STATUS_ROUND_ROBIN and not place.kinds and place.kind != "dead"
    ]
    if own.random() >= _EXCLUSIVE_SHARE or not places or plan.epochs:
        return
    chosen = own.choice(places)
    for client in plan.clients:
        if client.place == chosen and client.role == "consumer" and own.random() < 0.6:
            client.habits.terms += ((HEADER_EXCLUSIVE, "1"),)
            if own.random() < 0.3:
                said = [each for each in client.habits.terms if each[0] != HEADER_CONSUMER_PRIORITY]
                client.habits.terms = (*said, (HEADER_CONSUMER_PRIORITY, own.choice("123")))


def draw_single(plan: Plan) -> None:
    """Let one consumer of a channel take all of its messages."""
    own = Random(f"{plan.seed}/one consumer")
    channels = [
        place.channel
        for place in plan.places
        if place.status == STATUS_ROUND_ROBIN
        and not place.kinds
        and place.kind != "dead"
        and not place.fleeting
    ]
    if own.random() >= _SINGLE_SHARE or not channels or plan.epochs:
        return
    channel = own.choice(channels)
    for place in plan.places:
        place.single = place.channel == channel


def draw_skips(plan: Plan) -> None:
    """Let no consumer of some push queues wait for a slow one: for some it is one that takes little
    at a time."""
    own = Random(f"{plan.seed}/slow consumers")
    # Past the server's own bound a delivery is not tracked, so that it may come again (seed 8121).
    if own.random() >= _SKIPS_SHARE or plan.max_in_flight < _ANY_NUMBER:
        return
    for number, place in enumerate(plan.places):
        if place.status != STATUS_PUSH or place.kind not in ("share", "bulk"):
            continue
        place.skips = own.random() < 0.7
        there = [each for each in plan.clients if each.place == number and each.role == "consumer"]
        if there and own.random() < 0.7:
            habits = own.choice(there).habits
            said = [each for each in habits.terms if each[0] != HEADER_WINDOW]
            habits.terms = (*said, (HEADER_WINDOW, own.choice("12")))


def draw_ranks(plan: Plan) -> None:
    """Let each of ten priorities count in some queues, and most of the messages have one."""
    own = Random(f"{plan.seed}/ranks")
    numbers = [
        number
        for number, place in enumerate(plan.places)
        if place.status in (STATUS_PUSH, STATUS_ROUND_ROBIN)
        and place.kind not in ("dead", "brief")
        and not place.fleeting
    ]
    if own.random() >= _RANKS_SHARE or not numbers:
        return
    chosen = own.sample(numbers, own.randint(1, len(numbers)))
    for number in chosen:
        plan.places[number].priorities = TEN
    levels = own.choice(((0, 4, 9), (4, 5), tuple(range(10))))
    for message in plan.messages:
        if message.place in chosen and own.random() < 0.8:
            message.priority = own.choice(levels)
            message.high = message.priority > REGULAR_PRIORITY


def draw_durable(plan: Plan) -> None:
    """Most queues whose messages expire are durable: timeouts outlive the server.  So are half of
    those of dead letters, which come from memory."""
    own = Random(f"{plan.seed}/brief")
    for place in plan.places:
        if place.kind == "brief" and own.random() < 0.75:
            place.durable = place.saves = True
            place.memory_limit = own.choice((0, 1, 3))
    own = Random(f"{plan.seed}/graves")
    for place in plan.places:
        if place.kind == "dead" and own.random() < 0.5:
            place.durable = True
            place.memory_limit = own.choice((0, 0, 1))


def draw_burials(plan: Plan) -> None:
    """Often there are many dead letters for a durable queue, and for a while nobody who takes them,
    and the disk fails."""
    own = Random(f"{plan.seed}/burials")
    graves = [number for number, each in enumerate(plan.places) if each.kind == "dead"]
    for number in graves:
        if plan.quiet or not plan.places[number].durable or own.random() < 0.4:
            continue
        plan.disk.fails = 100
        for client in plan.clients:
            if client.place == number:
                client.at = own.uniform(0.3, 0.9) * plan.duration_s
            elif plan.places[client.place].dead_letter == plan.places[number].key:
                client.habits.nack = 600


def draw_returns(plan: Plan) -> None:
    """Now and then what is saved goes back to the end of its queue again and again, faster than the
    disk writes, which sometimes fails: so of some copies nobody knows whether they are there."""
    own = Random(f"{plan.seed}/returns")
    if plan.quiet or own.random() >= _RETURNS_SHARE:
        return
    for client in plan.clients:
        place = plan.places[client.place]
        if place.durable and client.role == "consumer":
            plan.disk.fails = 300
            plan.disk.sync_min_s, plan.disk.sync_max_s = 0.1, 0.3
            client.habits.give_back = 600
            client.habits.at_once = True
            client.habits.work_s = 0.0
            client.habits.forget = 300


def draw_quotas(plan: Plan) -> None:
    """Let little of a queue be on the disk at a time."""
    own = Random(f"{plan.seed}/quotas")
    if own.random() >= _QUOTAS_SHARE:
        return
    for number, place in enumerate(plan.places):
        sizes = [each.size for each in plan.messages if each.place == number]
        most = _MOST_WITH_QUOTA if place.durable else _MOST_SAVED_WITH_QUOTA
        if (place.durable or place.saves) and 0 < len(sizes) <= most:
            place.disk_limit_bytes = 2 * max(sizes) + own.choice((600, 1_200))


def draw_removed(plan: Plan) -> None:
    """Let producers take some messages out of their queues again while these wait."""
    own = Random(f"{plan.seed}/removed")
    if own.random() >= _REMOVED_SHARE:
        return
    for message in plan.messages:
        free = message.producer not in (plan.bulk_producer, plan.web_producer)
        free = free and plan.places[message.place].promise != "accepted"
        if free and not message.delay_s and own.random() < 0.3:
            message.cancel_s = own.choice((0.0, 0.1, 1.0))
            message.asks = True


def draw_shelves(plan: Plan) -> None:
    """Let little of what is deferred stay in memory."""
    own = Random(f"{plan.seed}/shelves")
    deferred = {message.place for message in plan.messages if message.delay_s}
    for number, place in enumerate(plan.places):
        if place.durable and number in deferred and own.random() < 0.8:
            place.memory_limit = own.choice((1, 1, 2))
    own = Random(f"{plan.seed}/spilled")
    for number, place in enumerate(plan.places):
        if place.overflow and number in deferred and own.random() < 0.8:
            place.memory_limit = 1
            if own.random() < 0.5:
                _hurry(plan, number, own)


def _hurry(plan: Plan, number: int, own: Random) -> None:
    """Let much that is deferred in a queue be due before a slow disk has it."""
    plan.disk.sync_max_s = 0.3
    for message in plan.messages:
        if message.place == number and message.delay_s:
            message.delay_s = own.choice((0.05, 0.05, 0.1, 0.4))


def draw_feeds(plan: Plan) -> None:
    """Now and then a queue feeds others, unless these would be fleeting ones."""
    own = Random(f"{plan.seed}/feeds")
    able = not any(place.fleeting for place in plan.places)
    if own.random() < _FEEDS_SHARE and able:
        plan.feeds = own.choice((6, 15, 40))
        plan.fed_kind = own.choice(_FED_KINDS)
        plan.fed_room = own.choice((0, 1, 3))
        plan.fed_filters = own.random() < _FILTERS_SHARE
        if not plan.fed_filters:
            plan.fed_room = 0


def draw_doors(plan: Plan) -> None:
    """Who speaks other protocols."""
    _draw_nsq(plan)
    _draw_throttr(plan)
    _draw_zmtp(plan)
    _draw_small(plan)
    _draw_jms(plan)


def _has_room(plan: Plan) -> bool:
    """Whether neither the limits of memory nor the channels that are destroyed when they are empty
    would hold for the queues of other protocols."""
    return not plan.is_narrow and not any(place.fleeting for place in plan.places)


def _draw_small(plan: Plan) -> None:
    """Now and then some clients speak Simple MQ, or goMS."""
    own = Random(f"{plan.seed}/smq")
    if own.random() < _SMQ_SHARE and _has_room(plan):
        plan.smq = own.choice((15, 40, 80))
        plan.smq_durable = own.random() < 0.6
        if not plan.quiet and own.random() < 0.2:
            plan.disk.fails = 100
    own = Random(f"{plan.seed}/goms")
    if own.random() < _GOMS_SHARE and _has_room(plan):
        plan.goms = own.choice((15, 40, 80))


def _draw_jms(plan: Plan) -> None:
    """Now and then some clients speak STOMP, or OpenWire."""
    own = Random(f"{plan.seed}/jms")
    if own.random() >= _JMS_SHARE or not _has_room(plan):
        return
    units = own.choice((10, 25, 60))
    durable = own.random() < 0.75
    if not plan.quiet and own.random() < 0.15:
        plan.disk.fails = 100
    if own.random() < 0.5:
        plan.stomp, plan.stomp_durable = units, durable
    else:
        plan.openwire, plan.openwire_durable = units, durable


def _draw_throttr(plan: Plan) -> None:
    """Now and then some clients speak Throttr; where rights or memory are scarce they could not
    know what they are answered."""
    own = Random(f"{plan.seed}/throttr")
    if own.random() < _THROTTR_SHARE and not plan.is_narrow and not plan.guarded:
        plan.throttr = own.choice((1, 2, 3))


def _draw_zmtp(plan: Plan) -> None:
    """Now and then there are sockets of ZeroMQ."""
    own = Random(f"{plan.seed}/zmtp")
    if own.random() < _ZMTP_SHARE and _has_room(plan):
        plan.zmtp = own.choice((15, 40, 80, 80))
        plan.zmtp_durable = own.random() < 0.7
        if not plan.quiet and own.random() < 0.25:
            plan.disk.fails = 100


def _draw_nsq(plan: Plan) -> None:
    """Now and then some clients speak NSQ."""
    own = Random(f"{plan.seed}/nsq")
    if own.random() < _NSQ_SHARE and _has_room(plan):
        plan.nsq = own.choice((6, 15, 30))
        plan.nsq_durable = own.random() < 0.7


def draw_removals(plan: Plan) -> None:
    """Now and then somebody makes groups of channels and removes each at once."""
    own = Random(f"{plan.seed}/removals")
    if own.random() < _REMOVALS_SHARE and _has_room(plan):
        plan.removals = own.choice((3, 8))


def draw_shifts(plan: Plan) -> None:
    """Now and then an operator moves messages between two queues of its own."""
    own = Random(f"{plan.seed}/shifts")
    if own.random() < _SHIFTS_SHARE and _has_room(plan):
        plan.shifts = own.choice((3, 8))


def draw_listeners(plan: Plan) -> None:
    """Let some consumers hear when a delivery is theirs no more."""
    own = Random(f"{plan.seed}/lapses")
    if plan.quiet or own.random() >= 0.08:
        return
    for client in plan.clients:
        if client.role in ("consumer", "puller") and own.random() < 0.7:
            client.habits.terms = (*client.habits.terms, (HEADER_TELL_LAPSED, "1"))
