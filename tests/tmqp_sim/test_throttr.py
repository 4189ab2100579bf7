"""Clients of Throttr in the simulation: replies are right, whatever befalls them."""

from __future__ import annotations

from collections import Counter

import pytest

from tmqp_sim.plan import draw_plan
from tmqp_sim.simulation import Simulation

pytestmark = pytest.mark.cold

#: The first seeds with clients of Throttr.
SEEDS = [seed for seed in range(200) if draw_plan(seed).throttr][:6]


def test_whatever_befalls_them_replies_are_right() -> None:
    marks: Counter[str] = Counter()
    for seed in SEEDS:
        result = Simulation(draw_plan(seed)).go()
        assert not result.failed, f"seed {seed}: {result.text}"
        marks.update({mark: 1 for mark in result.marks if "Throttr" in mark})
    assert marks.keys() >= {
        "Throttr client connected",
        "reply of Throttr is right",
        "message of Throttr taken",
        "key of Throttr is there in time",
    }
