"""The simulator's command line under test."""

from __future__ import annotations

import io
import os
import pickle
import re
import signal
from typing import Any

import pytest

from tmqp_sim import __main__ as command
from tmqp_sim import runner
from tmqp_sim.__main__ import main
from tmqp_sim.mutants import MUTANTS
from tmqp_sim.runner import caught_at, run_many
from tmqp_sim.simulation import run

pytestmark = pytest.mark.cold


def test_run_tells_how_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--seeds", "0..19", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("20 seeds in ")
    assert "failed: 0" in out
    assert "1 run twice, 0 of them differed" in out


@pytest.mark.long
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
    assert main(["marks", "--seeds", "3", "--jobs", "1"]) == 0, "one seed need not reach all"
    out = capsys.readouterr().out
    assert "fault: cut: a connection is reset" in out
    assert "not reached: " in out


def test_enough_runs_must_reach_every_mark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ENOUGH_RUNS", 1)
    assert main(["marks", "--seeds", "3", "--jobs", "1"]) == 1
    assert "not reached: " in capsys.readouterr().out


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_shows_how_far_it_is() -> None:
    bar = Terminal()
    run_many(range(3), bar=bar, twice_of=0)
    last = bar.getvalue().split("\r")[-1]
    assert last.startswith("[##############################] 3/3 seeds, 0 failed")
    assert last.endswith("\n")


@pytest.mark.long
def test_without_a_terminal_a_line_comes_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "_LINE_EVERY_S", 0.0)
    out = io.StringIO()
    run_many(range(30), bar=out, twice_of=0)
    first, second = out.getvalue().splitlines()
    assert first.startswith("25 of 30 seeds, 0 failed, ")
    assert second == "30 of 30 seeds, 0 failed, 0 s left"


@pytest.mark.long
def test_a_failure_is_told_at_once() -> None:
    out = io.StringIO()
    run_many(range(500), mutant="endless-hops", bar=out, enough=1, twice_of=0)
    assert re.match(r"\rseed \d+ failed: \w+\n", out.getvalue())


@pytest.mark.long
def test_control_c_ends_a_run_and_tells_what_was_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    portion = runner._portion

    def interrupted(results: Any, work: runner.Work) -> object:
        if work[0][0] > 0:
            raise KeyboardInterrupt
        return portion(results, work)

    monkeypatch.setattr(runner, "_portion", interrupted)
    assert main(["run", "--seeds", "0..99", "--jobs", "1"]) == 130
    out, err = capsys.readouterr()
    assert out.startswith("25 seeds in ")
    assert "interrupted after 25 seeds" in err


def test_what_is_left_of_a_run_goes_from_one_process_to_another() -> None:
    result = run(3)
    assert pickle.loads(pickle.dumps(result)).report() == result.report()  # noqa: S301 - our own


@pytest.mark.long
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


@pytest.mark.long
def test_a_portion_in_a_copy_of_the_process_is_the_same_and_its_end_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds = list(range(1_000, 1_006))
    here = runner._portion(runner._results, (seeds, "", 2))
    apart = runner._apart(runner._results, (seeds, "", 2))
    assert [(result.seed, result.digest, again, differs) for result, again, differs in apart] == [
        (result.seed, result.digest, again, differs) for result, again, differs in here
    ]

    def broken(seed: int) -> Any:
        raise ZeroDivisionError(f"in {seed}")

    monkeypatch.setattr(runner, "run", broken)
    with pytest.raises(RuntimeError, match="ZeroDivisionError: in 1000"):
        runner._apart(runner._results, (seeds, "", 0))
    monkeypatch.setattr(runner, "run", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(RuntimeError, match="a process ended with 9 in seeds 1000 to 1005"):
        runner._apart(runner._results, (seeds, "", 0))
