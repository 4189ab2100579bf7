"""Running many groups, on several processors."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tmqp_sim.replicas.group import run_group
from tmqp_sim.runner import Work, portions, spread
from tmqp_sim.world import Violation

__all__ = ["Told", "run_groups"]

#: What a group met and how often; and in words which promise it broke, empty if none.
Told: TypeAlias = tuple[dict[str, int], str]


def run_groups(seeds: Sequence[int], jobs: int = 1) -> Iterator[Told]:
    """Run a group for each seed; what came of them, in the order of the seeds.

    :param jobs: processes.
    """
    for told in spread(_results, portions(seeds), jobs):
        yield from told


def _results(work: Work, collected: int) -> list[Told]:
    results: list[Told] = []
    for number, seed in enumerate(work[0], 1):
        if collected and number % collected == 0:
            gc.collect()
        try:
            results.append((run_group(seed).world.marks, ""))
        except Violation as violation:
            results.append(({}, str(violation)))
    return results
