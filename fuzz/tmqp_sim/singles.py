"""Taking effects of runs apart: what a run comes to, told as if each message had come singly.

The ledger and the audit know single effects only, and judge what happens to each message of a run
by the very rules that hold for any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from tmqp_server.doors.native.runs import NativeRun
from tmqp_server.engine.commands import (
    ClientRun,
    Command,
    PassAnswer,
    Push,
    PushRun,
    SendDirect,
)
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
    Forward,
    ForwardRun,
)
from tmqp_server.engine.model.message import Message
from tmqp_sim.world import Violation

__all__ = ["Flights", "run_marks", "said_in_turn", "single_effects", "told_in_turn"]

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


def said_in_turn(
    run: ClientRun, effects: Sequence[Effect]
) -> Iterator[tuple[SendDirect | PassAnswer, list[Effect]]]:
    """Each message of a run from client to client, with what was passed on of it.

    :raises Violation: for an effect that none of them has.
    """
    passed: deque[Forward] = deque()
    for effect in effects:
        if not isinstance(effect, ForwardRun):
            raise Violation("runs", f"{effect!r} is no message of a client")
        passed.extend(effect.forwards())
    for single in run.wire.said(run):
        its = passed and passed[0].wire == single.wire
        yield single, [passed.popleft()] if its else []
    for left in passed:
        raise Violation("runs", f"{left!r} is nobody's message")


def run_marks(effect: Effect, command: Command | None) -> Iterator[str]:
    """What is noted of an effect of a run."""
    if isinstance(effect, AppendRun):
        yield "run taken whole: saved"
    elif isinstance(effect, EraseRun):
        yield "run taken whole: erased"
    elif isinstance(effect, ConfirmRun) and not isinstance(command, PushRun):
        yield "run taken whole: confirmed when safe"
    elif isinstance(effect, DeliverRun):
        run = effect.run
        if run.queues:
            yield "run taken whole: several queues"
        if run.is_mixed and effect.wants_acknowledge:
            yield "run taken whole: mixed, to be acknowledged"
        if run.odd:
            yield "run taken whole: both priorities"
        if isinstance(run.wire, NativeRun) and run.wire.frames.first.has_header:
            yield "run taken whole: headers"
        if not effect.is_whole():
            yield "run taken whole: dealt"
        if not effect.first_acquirer:
            yield "run taken whole: for several"


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
