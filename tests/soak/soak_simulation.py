"""The simulation for as long as there is: up to a million histories, whole promises each."""

from __future__ import annotations

import os

from tests.soak.share import first_seed, seconds
from tmqp_sim.marks import missing, table
from tmqp_sim.runner import run_many

SEEDS = 1_000_000


def test_a_million_histories() -> None:
    first = first_seed() * SEEDS
    summary = run_many(
        range(first, first + SEEDS), jobs=os.cpu_count() or 1, enough=5, seconds=seconds()
    )
    print("\n".join([*table(summary.marks), *summary.lines()]))
    assert [result.report() for result in summary.failures] == []
    assert summary.differing == []
    assert summary.runs < 100_000 or missing(summary.marks) == []
