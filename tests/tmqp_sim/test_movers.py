"""Movers under test: what kept a world from coming to rest although nothing was owed."""

from __future__ import annotations

import pytest

from tmqp_sim.movers import Mover
from tmqp_sim.simulation import run


def test_a_mover_does_not_create_again_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests, each refused and made again, were always one on its way (seed 118482)."""
    made: list[int] = []
    begun: list[str] = []
    create, begin = Mover._create, Mover.begin

    def counting(mover: Mover, queue_id: int, status: str) -> None:
        made.append(queue_id)
        create(mover, queue_id, status)

    def noting(mover: Mover) -> None:
        begun.append(mover.name)
        begin(mover)

    monkeypatch.setattr(Mover, "_create", counting)
    monkeypatch.setattr(Mover, "begin", noting)
    result = run(118482)
    assert not result.failed, result.text
    # The second connection finds both queues there; nobody refuses one for another reason here.
    assert len(begun) > 1
    assert len(made) == 2 * len(begun)
