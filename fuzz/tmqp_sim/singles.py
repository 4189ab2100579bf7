"""Owns taking effects of runs apart: what a run comes to, told as if each message had come singly.

The ledger and the audit know single effects only, and judge what becomes of each message of a run
by the very rules that hold for any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tmqp_server.engine.effects import AppendRun, ConfirmRun, Deliver, DeliverRun, Effect, EraseRun
from tmqp_server.engine.model.message import Message

__all__ = ["Flights", "single_effects"]

#: What is in flight of the queue of a channel, by message id.
Flights = Callable[[str, int], Mapping[str, Message]]


def single_effects(effects: Sequence[Effect], flights: Flights) -> list[Effect]:
    """The same effects, with those of runs each by itself.

    :param flights: tells which message a delivery is about, so that it is known when it comes
        again; asked only where an acknowledge is awaited.
    """
    found: list[Effect] = []
    at = 0
    while at < len(effects):
        effect = effects[at]
        at += 1
        if isinstance(effect, DeliverRun):
            rest = effects[at] if at < len(effects) else None
            if isinstance(rest, DeliverRun) and rest.run is effect.run:
                at += 1  # it has the other recipients of the same messages
                _deliveries(effect, rest, flights, found)
            else:
                _deliveries(effect, None, flights, found)
        elif isinstance(effect, ConfirmRun):
            found += effect.confirms()
        elif isinstance(effect, AppendRun):
            found += effect.appends()
        elif isinstance(effect, EraseRun):
            found += effect.erases()
        else:
            found.append(effect)
    return found


def _deliveries(
    first: DeliverRun, rest: DeliverRun | None, flights: Flights, found: list[Effect]
) -> None:
    """Each message goes to all its recipients before the next."""
    singles: list[Deliver] = first.deliveries()
    others: list[Deliver] = [] if rest is None else rest.deliveries()
    if first.wants_acknowledge:
        there = flights(first.channel, first.run.queue_id)
        for single in singles:
            single.message = there.get(single.message.message_id, single.message)
    for place in range(len(singles)):
        single = singles[place]
        found.append(single)
        if others:
            other = others[place]
            other.message = single.message
            found.append(other)
