"""Taking effects of runs apart: what a run comes to, told as if each message had come singly.

The ledger and the audit know single effects only, and judge what happens to each message of a run
by the very rules that hold for any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from tmqp_server.engine.commands import Push, PushRun
from tmqp_server.engine.effects import (
    Append,
    AppendRun,
    Confirm,
    ConfirmRun,
    Deliver,
    DeliverRun,
    Effect,
    Erase,
    EraseRun,
)
from tmqp_server.engine.model.message import Message
from tmqp_sim.world import Violation

__all__ = ["Flights", "single_effects", "told_in_turn"]

#: What is in flight of the queue of a channel, by message id.
Flights = Callable[[str, int], Mapping[str, Message]]


def single_effects(effects: Sequence[Effect], flights: Flights) -> list[Effect]:
    """The same effects, with those of runs each by itself.

    :param flights: tells which message a delivery is about, so that it is known when it comes
        again; asked only where an acknowledgement is awaited.
    """
    found: list[Effect] = []
    at = 0
    while at < len(effects):
        effect = effects[at]
        at += 1
        if isinstance(effect, DeliverRun):
            parts = [effect]
            while at < len(effects):
                other = effects[at]
                if not isinstance(other, DeliverRun) or other.run is not effect.run:
                    break
                parts.append(other)  # other recipients, or other messages of the same run
                at += 1
            found += _deliveries(parts, flights)
        elif isinstance(effect, ConfirmRun):
            found += effect.confirms()
        elif isinstance(effect, AppendRun):
            found += _appends(effect)
        elif isinstance(effect, EraseRun):
            found += [Erase(0, effect.key, sequence) for sequence in effect.sequences]
        else:
            found.append(effect)
    return found


def told_in_turn(run: PushRun, singles: Sequence[Effect]) -> Iterator[tuple[Push, list[Effect]]]:
    """Each push of a mixed run, with what its producer was told and what was sent of it.

    :raises Violation: for an effect that none of them has.
    """
    told = deque([each for each in singles if isinstance(each, Confirm)])
    others = deque([each for each in singles if not isinstance(each, Confirm)])
    for push in run.wire.pushes(run):
        found: list[Effect] = []
        if told and told[0].message_id == push.message_id:
            found.append(told.popleft())
        while others:
            single = others[0]
            if not isinstance(single, Deliver) or single.message.message_id != push.message_id:
                break
            found.append(single)
            others.popleft()
        yield push, found
    for left in (*told, *others):
        raise Violation("runs", f"{left!r} is nobody's push")


def _appends(effect: AppendRun) -> list[Append]:
    """One for each message, all with the one ticket."""
    return [
        Append(
            effect.ticket,
            message,
            effect.channel,
            message.queue_id,
            effect.key,
            effect.sequence + place,
            False,
            0,
            0,
        )
        for place, message in enumerate(effect.messages)
    ]


def _deliveries(parts: list[DeliverRun], flights: Flights) -> list[Deliver]:
    """Each message goes to all its recipients before the next."""
    placed: list[tuple[int, int, Deliver]] = []
    messages: dict[int, Message] = {}
    for number, part in enumerate(parts):
        places = range(part.start, part.stop, part.step)
        for place, single in zip(places, part.deliveries(), strict=True):
            known = single.message
            if part.wants_acknowledge:
                known = flights(part.channel, known.queue_id).get(known.message_id, known)
            single.message = messages.setdefault(place, known)
            placed.append((place, number, single))
    placed.sort(key=lambda each: each[:2])
    return [single for _, _, single in placed]
