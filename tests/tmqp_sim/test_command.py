"""Owns the simulator's command line under test."""

from __future__ import annotations

import io

import pytest

from tmqp_sim.__main__ import main
from tmqp_sim.mutants import MUTANTS
from tmqp_sim.runner import caught_at, run_many

pytestmark = pytest.mark.cold


def test_run_tells_how_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--seeds", "0..19", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("20 seeds in ")
    assert "failed: 0" in out
    assert "1 run twice, 0 of them differed" in out


def test_run_shows_a_failure_and_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--seeds", "0..5", "--jobs", "1", "--mutant", "always-first", "--minimise"]
    assert main([*arguments, "--enough", "1"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: flags" in out
    assert "left out: " in out
    assert "python -m tmqp_sim replay" in out


def test_replay_tells_of_one_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("seed 4: ")
    assert "kept every promise" in out
    assert main(["replay", "4", "--mutant", "endless-hops"]) == 1
    assert "hops left, not 15" in capsys.readouterr().out


def test_minimise_says_what_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["minimise", "0", "--mutant", "told-twice"]) == 1
    out, err = capsys.readouterr()
    assert "left out: " in out
    assert "things left" in err


def test_marks_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["marks", "--seeds", "3", "--jobs", "1"]) == 1, "one seed does not reach all"
    out = capsys.readouterr().out
    assert "fault: cut: a connection is reset" in out
    assert "not reached: " in out


def test_digests_are_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["digests", "--seeds", "7..9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["7", "8", "9"]
    assert len({line.split()[1] for line in lines}) == 3


@pytest.mark.parametrize("text", ["x", "5..x", "9..3", "-1", ""])
def test_seeds_that_are_none_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", f"--seeds={text}"])
    assert caught.value.code == 2
    assert "seed" in capsys.readouterr().err


def test_a_bar_shows_how_far_it_is() -> None:
    bar = io.StringIO()
    run_many(range(3), bar=bar, twice_of=0)
    last = bar.getvalue().split("\r")[-1]
    assert last.startswith("[##############################] 3/3 seeds, 0 failed")
    assert last.endswith("\n")


def test_enough_failures_end_a_run() -> None:
    summary = run_many(range(500), mutant="endless-hops", enough=1, twice_of=0)
    assert summary.runs < 500
    assert summary.failures


def test_a_hunt_ends_empty_handed_when_nothing_is_wrong() -> None:
    assert caught_at("", 3) == (-1, None)
    seed, result = caught_at("told-twice", 10)
    assert result is not None
    assert result.seed == seed
    assert "told-twice" in MUTANTS
