"""Simulated groups of replicated servers: promises are kept, and planted bugs are found."""

from __future__ import annotations

from typing import Final

import pytest

from tests.project import ROOT
from tmqp_sim.replicas.__main__ import main
from tmqp_sim.replicas.bugs import BUGS, caught_at
from tmqp_sim.replicas.group import run_group
from tmqp_sim.replicas.runner import run_groups

pytestmark = pytest.mark.timeout(120)

#: Seeds of this share; ``make sim-replicas`` runs more.
QUICK: Final = 6
LONG: Final = 40
#: Where bugs were found last, but for those that a seed below 20 finds.
FOUND_AT: Final = {
    "anybody-appends": 57,
    "copied-unheld": 66,
    "copy-not-compared": 363,
    "time-too-early": 1141,
}
#: Of the planted bugs that the design of replication names.
NAMED: Final = frozenset(
    {
        "anybody-appends",
        "answered-before-appended",
        "promoted-early",
        "another-number",
        "unknown-is-lost",
        "trims-too-much",
    }
)
#: What so many groups meet.
MARKS: Final = frozenset(
    {
        "a copy broke off",
        "a disk was replaced",
        "a leader crashed",
        "a leader crashed while it wrote",
        "a leader stopped in order",
        "a leader lost its claim",
        "a leader was fenced",
        "a new disk came too late for the log",
        "a program that rebuilds crashed",
        "a request was carried out after it was given up",
        "a request was lost",
        "a request was repeated",
        "a server froze",
        "a server gave back the claim of its earlier life",
        "a server was rebuilt",
        "a transient message",
        "a write of several parts",
        "an answer came twice or too late",
        "an answer was lost",
        "an append was not answered",
        "an append was refused",
        "two servers believed to lead",
    }
)


@pytest.mark.parametrize("seed", range(QUICK))
def test_a_group_keeps_its_promises(seed: int) -> None:
    group = run_group(seed)
    assert group.traffic.is_done


def test_a_seed_gives_one_history() -> None:
    assert run_group(7).world.digest() == run_group(7).world.digest()


@pytest.mark.long
def test_many_groups_keep_their_promises_and_meet_every_fault() -> None:
    met: set[str] = set()
    for seed in range(QUICK, LONG):
        met.update(run_group(seed).world.marks)
    assert MARKS - met == set()


def test_the_document_counts_them() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    told = f"Each of {len(BUGS)} planted bugs is found by a seed below 1,200"
    assert told in " ".join(text.split())


def test_the_bugs_that_the_design_names_are_among_those_planted() -> None:
    assert BUGS.keys() >= NAMED
    assert len(BUGS) >= len(NAMED) + 10


@pytest.mark.parametrize("name", BUGS)
def test_what_a_planted_bug_replaces_is_still_there(name: str) -> None:
    with BUGS[name].planted() as bug:
        assert bug.text


@pytest.mark.long
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    first = FOUND_AT.get(name, 0)
    assert caught_at(name, range(first, first + 20)) >= 0


def test_the_command_tells_of_seeds_and_fails_with_a_bug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seeds", "0..1", "--jobs", "1"]) == 0
    assert "2 groups, 0 of them broke a promise" in capsys.readouterr().out
    with BUGS["answered-before-appended"].planted():
        assert main(["--seeds", "0", "--jobs", "1"]) == 1
    assert "which is not there" in capsys.readouterr().out


@pytest.mark.long
def test_groups_met_the_same_in_other_processes() -> None:
    here, there = (list(run_groups(range(30, 32), jobs)) for jobs in (1, 2))
    assert here == there
    assert all(met and not broken for met, broken in here)
