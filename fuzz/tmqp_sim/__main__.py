"""The simulator's command line: run, replay, minimise, marks, mutants, digests."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from tmqp_sim.marks import ENOUGH_RUNS, missing, table
from tmqp_sim.minimise import minimise
from tmqp_sim.mutants import MUTANTS, planted
from tmqp_sim.runner import Summary, caught_at, run_many, seeds_of
from tmqp_sim.simulation import WATCHABLE, run

__all__ = ["main"]

_BUG: Final = 'plant this bug; "mutants" lists all'


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tmqp_sim",
        description="The broker, its door and its clients in a world of virtual time and faults.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    several = argparse.ArgumentParser(add_help=False)
    several.add_argument("--seeds", type=seeds_of, default=range(1_000), help="such as 0..9999")
    several.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    several.add_argument("--mutant", metavar="BUG", choices=["", *MUTANTS], default="", help=_BUG)
    several.add_argument("--seconds", type=float, default=0.0, help="stop after this time")
    several.add_argument("--no-bar", action="store_true", help="show no progress")
    single = argparse.ArgumentParser(add_help=False)
    single.add_argument("seed", type=int)
    single.add_argument("--mutant", metavar="BUG", choices=["", *MUTANTS], default="", help=_BUG)
    runs = commands.add_parser("run", parents=[several], help="run seeds, and report failures")
    runs.add_argument("--enough", type=int, default=5, help="stop after this number of failures")
    runs.add_argument("--minimise", action="store_true", help="minimise the first failure")
    commands.add_parser(
        "marks", parents=[several], help="count how often each rare branch is reached"
    )
    digests = commands.add_parser("digests", parents=[several], help="print a digest of each run")
    digests.add_argument(
        "--unwatched", action="store_true", help="without a look at the broker's steps"
    )
    replay = commands.add_parser(
        "replay", parents=[single], help="run one seed and show its history"
    )
    replay.add_argument("--without", nargs="*", default=[], help="leave these things out")
    commands.add_parser("minimise", parents=[single], help="minimise a failing seed")
    mutants = commands.add_parser("mutants", help="find a seed that detects each planted bug")
    mutants.add_argument("--limit", type=int, default=1_000, help="seeds to try")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when all is well, 1 when something was found, 2 for a wrong command, 130
    when it was interrupted before anything was found."""
    options = _parser().parse_args(arguments)
    if options.command == "run":
        return _run(options)
    if options.command == "marks":
        return _marks(options)
    if options.command == "digests":
        with planted(options.mutant):
            for seed in options.seeds:
                watched = WATCHABLE and not options.unwatched
                print(seed, run(seed, watched=watched).digest)
        return 0
    if options.command == "mutants":
        return _mutants(options.limit)
    with planted(options.mutant):
        if options.command == "minimise":
            result = minimise(options.seed, lambda line: print(line, file=sys.stderr))
            if result.left_out:
                print(f"left out: {', '.join(result.left_out)}")
        else:
            result = run(options.seed, tuple(options.without))
    if result.failed:
        print(result.report())
        return 1
    print("\n".join(result.plan))
    print(
        f"kept every promise: {result.events} events in {result.simulated_s:.1f} simulated s,"
        f" healed in {result.healed_in_s:.1f} s, digest {result.digest}"
    )
    return 0


def _many(options: argparse.Namespace, enough: int) -> Summary:
    bar = None if options.no_bar else sys.stderr
    summary = run_many(
        options.seeds, options.jobs, options.mutant, bar, enough, seconds=options.seconds
    )
    if summary.interrupted:
        print(f"interrupted after {summary.runs:,} seeds", file=sys.stderr)
    return summary


def _run(options: argparse.Namespace) -> int:
    summary = _many(options, options.enough)
    for index, result in enumerate(summary.failures):
        if options.minimise and index == 0:
            with planted(options.mutant):
                result = minimise(result.seed, start=result)  # noqa: PLW2901 - its smaller form
            print(f"left out: {', '.join(result.left_out) or 'nothing'}")
        print(result.report(), end="\n\n")
    for seed in summary.differing:
        print(f"seed {seed} came out differently the second time")
    print("\n".join(summary.lines()))
    if summary.failures:
        again = summary.failures[0].seed
        print(f"to see the first again: python -m tmqp_sim replay {again}")
    return _status(summary)


def _status(summary: Summary, unreached: Sequence[str] = ()) -> int:
    if summary.failures or summary.differing or unreached:
        return 1
    return 130 if summary.interrupted else 0


def _marks(options: argparse.Namespace) -> int:
    summary = _many(options, 0)
    for result in summary.failures:
        print(result.report(), end="\n\n")
    for seed in summary.differing:
        print(f"seed {seed} came out differently the second time")
    print("\n".join(table(summary.marks)))
    print("\n".join(summary.lines()))
    unreached = missing(summary.marks)
    if unreached:
        print(f"not reached: {', '.join(unreached)}")
    return _status(summary, unreached if summary.runs >= ENOUGH_RUNS else ())


def _mutants(limit: int) -> int:
    escaped = 0
    for name, mutant in MUTANTS.items():
        seed, result = caught_at(name, limit)
        if result is None:
            escaped += 1
            print(f"{name:22} NOT FOUND in {limit} seeds: {mutant.text}")
        else:
            print(f"{name:22} seed {seed:4} by {result.checker:12} {mutant.text}", flush=True)
    print(f"{len(MUTANTS) - escaped} of {len(MUTANTS)} found")
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
