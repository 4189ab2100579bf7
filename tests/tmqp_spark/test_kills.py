"""Drivers die with their JVMs, wherever a micro-batch is: every row is in the queue once.

That the processes of tasks, plans and commits die, and the broker, is tried in
:mod:`tests.tmqp_spark.test_sink`, within one session; ``make soak`` does more of all of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tmqp_spark.rounds import run_rounds

#: Each point of a round kills once; `make soak` does fifty rounds.
ROUNDS = 1


@pytest.mark.long
@pytest.mark.cold
@pytest.mark.timeout(900)
def test_a_killed_driver_leaves_nothing_out_and_nothing_twice(tmp_path: Path) -> None:
    said = run_rounds(tmp_path, "driver", lambda done: done < ROUNDS)
    assert f"{ROUNDS * 5} kills" in said
    assert said.split("lost ")[1].startswith("0, duplicated 0")
