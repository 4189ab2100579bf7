"""Clients of Throttr in the simulation: replies are right, and what is wrong is noticed."""

from __future__ import annotations

from collections import Counter

import pytest

from tmqp_server.engine.commands import Command, DropCell, MakeCounter
from tmqp_server.engine.model.cells import Space
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.operations.cells import Cells
from tmqp_sim.plan import draw_plan
from tmqp_sim.results import Result
from tmqp_sim.simulation import Simulation

pytestmark = pytest.mark.cold

#: The first seeds with clients of Throttr.
SEEDS = [seed for seed in range(200) if draw_plan(seed).throttr][:6]


def outcome(seed: int) -> Result:
    return Simulation(draw_plan(seed)).go()


def test_whatever_befalls_them_replies_are_right() -> None:
    marks: Counter[str] = Counter()
    for seed in SEEDS:
        result = outcome(seed)
        assert not result.failed, f"seed {seed}: {result.text}"
        marks.update({mark: 1 for mark in result.marks if "Throttr" in mark})
    assert marks.keys() >= {
        "Throttr client connected",
        "reply of Throttr is right",
        "message of Throttr taken",
        "key of Throttr is there in time",
    }


def noticed() -> bool:
    """Whether it is noticed that something is wrong with the server: by clients of Throttr, or
    before them by the books."""
    return any(outcome(seed).failed for seed in SEEDS)


def test_a_key_that_is_not_removed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(self: Cells, command: Command, session: Session) -> None:
        assert isinstance(command, DropCell)
        found = self._find(command.space, command.key, self._now_ns())
        self._core.reply(session, command.request, 404 if found is None else 0)

    monkeypatch.setattr(Cells, "drop", drop)
    assert noticed()


def test_a_counter_that_is_made_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Cells.make_counter

    def make(self: Cells, command: Command, session: Session) -> None:
        assert isinstance(command, MakeCounter)
        found = self._find(command.space, command.key, self._now_ns())
        if found is not None:
            self._free(found)
        right(self, command, session)

    monkeypatch.setattr(Cells, "make_counter", make)
    assert noticed()


def test_a_list_that_leaves_the_last_one_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Space.listed
    monkeypatch.setattr(Space, "listed", lambda self, first, limit: right(self, first, limit)[:-1])
    assert noticed()


def test_a_key_that_outlives_its_time_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Cells._due_ns

    def late(self: Cells, ttl: int, unit: int, now_ns: int) -> int:
        return right(self, ttl, unit, now_ns) + 60_000_000_000

    monkeypatch.setattr(Cells, "_due_ns", late)
    assert noticed()
