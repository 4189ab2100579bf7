"""A streaming query that writes exactly once, killed at each point of micro-batches, many times.

``TMQP_SOAK_ROUNDS=50`` does as many rounds with each victim (:mod:`tests.tmqp_spark.rounds`),
however long they take; without it there are as many as the time allows, and one at least.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.soak.share import seconds
from tests.tmqp_spark.rounds import POINTS, run_rounds

ROUNDS = int(os.environ.get("TMQP_SOAK_ROUNDS", "0"))


@pytest.mark.parametrize("victim", list(POINTS))
def test_every_row_is_there_once(tmp_path: Path, victim: str) -> None:
    until = time.monotonic() + seconds() / len(POINTS)

    def more(done: int) -> bool:
        print(f"\r{victim}: {done}", end="\r", flush=True)
        return done < ROUNDS if ROUNDS else done == 0 or time.monotonic() < until

    print(run_rounds(tmp_path, victim, more))
