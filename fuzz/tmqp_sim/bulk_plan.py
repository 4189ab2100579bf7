"""What a plan draws about a producer that pushes many messages at once: so many that the server
takes them as runs, together where it can, and some of them as mixed ones."""

from __future__ import annotations

from random import Random
from typing import Final

from tmqp.constants import STATUS_BROADCAST, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_sim.consumers import Habits
from tmqp_sim.history import Place
from tmqp_sim.planned import ClientPlan, MessagePlan, Plan

__all__ = ["draw_bulk", "draw_mixed"]

#: Runs in which many messages are pushed at once into a place of their own.
_BULK_SHARE: Final = 0.3
#: How many of these are mixed where nothing is acknowledged, where it is, and where messages are
#: saved: the last are divided.
_MIXED_SHARE: Final = 0.6
_MIXED_ACKED_SHARE: Final = 0.4
_MIXED_SAVED_SHARE: Final = 0.1
_SMALL_WINDOW: Final = 10
#: Where the numbers of further queues begin.
_SIBLING_ID: Final = 300


def draw_bulk(plan: Plan) -> None:
    """Now and then a place that many messages are pushed into at once, so that the server takes
    them as runs, together where it can: consumers with room, who answer in bulk too."""
    own = Random(f"{plan.seed}/bulk")
    if own.random() >= _BULK_SHARE:
        return
    plan.divides_runs = own.random() < 0.2
    plan.bulk_linger_s = own.choice((0.0, 0.005, 0.05))
    plan.bulk_traces = Random(f"{plan.seed}/traces").random() < 0.3
    plan.bulk_producer = plan.producers
    plan.producers += 1
    narrow = plan.shape.room < 65_536
    if plan.max_in_flight < 10:
        one_by_one = 10_000 if plan.shape.delay_max > 0.05 else plan.max_in_flight
        plan.max_in_flight = own.choice((one_by_one, 25, 10_000, 10_000))
        if plan.max_in_flight == 25 and Random(f"{plan.seed}/room").random() < 0.5:
            plan.max_in_flight = 6  # which a whole run could exceed
    timeout_s = 3.0 if narrow or plan.shape.delay_max > 0.05 else own.choice((0.75, 1.5, 3.0))
    place = _bulk_place(len(plan.places), timeout_s, own)
    plan.places.append(place)
    turns = Random(f"{plan.seed}/turns")
    consumers = own.choice((1, 1, 1, 1, 1, 2)) if place.acks else own.choice((1, 2, 3))
    if place.kind == "bulk" and turns.random() < 0.3:
        place.status = STATUS_ROUND_ROBIN
        place.exclusive = True
        consumers = turns.choice((2, 3, 4))
    _draw_bulk_clients(plan, place, consumers, own)
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


def _draw_bulk_clients(plan: Plan, place: Place, consumers: int, own: Random) -> None:
    number = len(plan.places) - 1
    for count in range(consumers):
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


def draw_mixed(plan: Plan) -> None:
    """Often the messages that come up together are for several queues of one channel, or of both
    priorities.

    The last thing that is drawn of places, or what was drawn by their number would be others.
    """
    own = Random(f"{plan.seed}/mixed")
    number = _bulk_number(plan)
    if number < 0:
        return
    place = plan.places[number]
    share = _MIXED_SHARE
    if place.acks:
        share = _MIXED_SAVED_SHARE if place.saves else _MIXED_ACKED_SHARE
    # Whole runs beyond a small window are rare enough.
    if own.random() >= share or (place.acks and plan.max_in_flight < _SMALL_WINDOW):
        return
    # Who is notified of each message gets none of them in a mixed run.
    told = place.acks or own.random() < 0.15
    if not told:
        place.handler = "ack-if-asked"
    numbers = [number]
    for _ in range(own.choice((0, 1, 1, 2, 4))):
        numbers.append(len(plan.places))
        plan.places.append(_sibling(place, _SIBLING_ID + len(plan.places)))
    highs = own.choice((0.0, 0.0, 0.1, 0.5)) if len(numbers) > 1 else 0.3
    for message in plan.messages:
        if message.producer == plan.bulk_producer:
            message.place = own.choice(numbers)
            message.asks = message.asks and told
            if highs:
                message.high = own.random() < highs


def _bulk_number(plan: Plan) -> int:
    """The place that is pushed into in bulk, -1 if there is none, or its messages need headers that
    the server reads."""
    for message in plan.messages:
        if message.producer == plan.bulk_producer:
            place = plan.places[message.place]
            return -1 if place.kinds or place.groups else message.place
    return -1


def _sibling(place: Place, queue_id: int) -> Place:
    """A queue of the same channel that is like another one."""
    found = Place(
        place.kind, place.channel, queue_id, place.status, place.handler, place.promise,
        place.ack_timeout_s, acks=place.acks, exclusive=place.exclusive, saves=place.saves,
        durable=place.durable, memory_limit=place.memory_limit,
    )  # fmt: skip
    found.disk_limit_bytes = place.disk_limit_bytes
    return found
