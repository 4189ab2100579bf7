"""Feeders under test: what seemed not to come to rest although much was done."""

from __future__ import annotations

from tmqp_sim.simulation import HEALING_S, run


def test_items_that_were_copied_meanwhile_made_a_busy_world_look_stuck() -> None:
    """All clients share two messages a second; each of 43 items became three (seed 18767)."""
    result = run(18767)
    assert not result.failed, result.text
    assert result.healed_in_s > HEALING_S
    assert result.marks["client held back by its rate"]
