"""The simulation for as long as there is: up to a million histories, whole promises each."""

from __future__ import annotations

import os

from tmqp_sim.marks import missing, table
from tmqp_sim.runner import run_many

SEEDS = 1_000_000


def test_a_million_histories() -> None:
    seconds = float(os.environ.get("TMQP_SOAK_SECONDS", "600"))
    first = int(os.environ.get("TMQP_SOAK_SEED", "1")) * SEEDS
    summary = run_many(
        range(first, first + SEEDS), jobs=os.cpu_count() or 1, enough=5, seconds=seconds
    )
    print("\n".join([*table(summary.marks), *summary.lines()]))
    assert [result.report() for result in summary.failures] == []
    assert summary.differing == []
    assert summary.runs < 100_000 or missing(summary.marks) == []
