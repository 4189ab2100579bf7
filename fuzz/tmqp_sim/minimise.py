"""Making a failing run smaller, until everything that is left is needed.

Theory of operation.  A plan's things have names.  First whole groups are left out (all faults of a
kind, all bad clients, all messages of a producer), then halves, quarters and so on of what is left,
as long as the same checker complains.  Each trial is a whole run, so their number is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tmqp_sim.cluster_plan import ClusterPlan, draw_cluster, is_cluster
from tmqp_sim.plan import Plan, draw_plan
from tmqp_sim.results import Result
from tmqp_sim.simulation import run

__all__ = ["minimise"]

#: Runs that a reduction may take.
MAX_TRIALS: Final = 400


def minimise(
    seed: int,
    tell: Callable[[str], None] | None = None,
    trials: int = MAX_TRIALS,
    start: Result | None = None,
) -> Result:
    """The smallest run of a seed that fails as the whole one does; the whole one if it passes.

    :param tell: is notified of each step.
    :param start: the result of the whole run, if it is known.
    """
    best = run(seed) if start is None else start
    if not best.failed:
        return best
    plan = draw_cluster(seed) if is_cluster(seed) else draw_plan(seed)
    left = [name for name in plan.names() if name not in best.left_out]
    for group in _groups(plan):
        found = _try(seed, best, left, group)
        trials -= 1
        if found is not None:
            best = found
            left = [name for name in left if name not in group]
    if tell is not None:
        tell(f"{len(left)} things left, {best.events} events, {trials} trials")
    size = max(len(left) // 2, 1)
    while trials > 0 and left:
        smaller = False
        for start_at in range(0, len(left), size):
            group = left[start_at : start_at + size]
            found = _try(seed, best, left, group)
            trials -= 1
            if found is not None:
                best = found
                left = [name for name in left if name not in group]
                smaller = True
                break
            if trials <= 0:
                break
        if tell is not None:
            tell(f"{len(left)} things left, {best.events} events, {trials} trials")
        if not smaller:
            if size == 1:
                break
            size = max(size // 2, 1)
    return best


def _try(seed: int, best: Result, left: list[str], group: list[str]) -> Result | None:
    """Leave a group out; None when it is needed, or was out already."""
    gone = [name for name in group if name in left]
    if not gone:
        return None
    result = run(seed, (*best.left_out, *gone))
    return result if result.checker == best.checker else None


def _groups(plan: Plan | ClusterPlan) -> Iterator[list[str]]:
    """What belongs together."""
    for kind in {fault.kind: None for fault in plan.faults}:
        yield [fault.name for fault in plan.faults if fault.kind == kind]
    yield [client.name for client in plan.clients if client.bad]
    for producer in range(plan.producers):
        yield [message.name for message in plan.messages if message.producer == producer]
    for place in range(len(plan.places)):
        yield [message.name for message in plan.messages if message.place == place]
