"""Running many seeds, on several processors, with a bar that shows how far it is.

This is the one module of the simulator that knows the machine it runs on: its processors, its
clock, its terminal.  No simulated thing may import it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NoReturn, TextIO, TypeAlias, TypeVar

from tmqp_sim.mutants import planted
from tmqp_sim.results import Result
from tmqp_sim.simulation import run

__all__ = ["Summary", "Work", "caught_at", "portions", "run_many", "seeds_of", "spread"]

#: Seeds that a process is given at a time.
_PORTION: Final = 25
#: Seeds whose garbage is collected together.
_COLLECTED: Final = 5
_BAR_WIDTH: Final = 30
#: How often the bar is drawn again, in seconds; and a line written where there is no terminal.
_BAR_EVERY_S: Final = 0.25
_LINE_EVERY_S: Final = 60.0

T = TypeVar("T")

#: Seeds, the planted bug, and one of how many seeds is run twice.
Work: TypeAlias = tuple[list[int], str, int]
#: What came of a seed, whether it was run twice, and whether it then came out otherwise.
_Told: TypeAlias = tuple[Result, bool, bool]


def seeds_of(text: str) -> range:
    """The seeds that a command line names: ``17``, ``0..9999`` (both ends count).

    :raises argparse.ArgumentTypeError: when it names none.
    """
    first, dots, last = text.partition("..")
    try:
        start = int(first)
        end = int(last) if dots else start
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"seeds are a number or a range such as 0..9999, not {text!r}"
        ) from None
    if end < start or start < 0:
        raise argparse.ArgumentTypeError(f"{text!r} holds no seed")
    return range(start, end + 1)


class Summary:
    """What came of many runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.events = 0
        self.simulated_s = 0.0
        self.elapsed_s = 0.0
        self.slowest_healing_s = 0.0
        self.failures: list[Result] = []
        self.marks: Counter[str] = Counter()
        self.again = 0
        self.interrupted = False
        self.differing: list[int] = []

    def add(self, result: Result, repeated: bool, differs: bool) -> None:
        """One more run."""
        self.runs += 1
        self.events += result.events
        self.simulated_s += result.simulated_s
        self.slowest_healing_s = max(self.slowest_healing_s, result.healed_in_s)
        self.marks.update(result.marks)
        if result.failed:
            self.failures.append(result)
        self.again += repeated
        if differs:
            self.differing.append(result.seed)

    def lines(self) -> list[str]:
        """In words."""
        speed = self.simulated_s / self.elapsed_s if self.elapsed_s else 0.0
        return [
            (
                f"{self.runs:,} seeds in {self.elapsed_s:.1f} s:"
                f" {self.simulated_s / 3600:.1f} simulated hours, {speed:,.0f} times real time,"
                f" {self.events:,} events"
            ),
            (
                f"failed: {len(self.failures)}; the slowest healing took"
                f" {self.slowest_healing_s:.1f} simulated s;"
                f" {self.again:,} run twice, {len(self.differing)} of them differed"
            ),
        ]


def _apart(results: Callable[[Work, int], list[T]], work: Work) -> list[T]:
    """Run a portion in a copy of this process, which ends with it.

    So nothing is ever collected, which is a third of the time in a process that has run for long,
    because what is left of a run lies all over its memory; and no run finds what another left.
    """
    if not hasattr(os, "fork"):
        return _portion(results, work)
    receiving, sending = os.pipe()
    copy = os.fork()
    if not copy:
        _tell_and_end(results, work, receiving, sending)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(copy, 0)
    if status:
        seeds = work[0]
        raise RuntimeError(f"a process ended with {status} in seeds {seeds[0]} to {seeds[-1]}")
    told: list[T]
    told, error = pickle.loads(data)  # noqa: S301 - our own
    if error:
        raise RuntimeError(error)
    return told


def _tell_and_end(
    results: Callable[[Work, int], list[T]], work: Work, receiving: int, sending: int
) -> NoReturn:
    """Of a copy: run, write what came of it, and be gone without a look back."""
    status = 1
    try:
        os.close(receiving)
        told: tuple[list[T], str]
        try:
            told = (results(work, 0), "")
        except Exception:  # noqa: BLE001 - told where it can be seen
            told = ([], traceback.format_exc())
        with os.fdopen(sending, "wb") as pipe:
            pickle.dump(told, pipe, pickle.HIGHEST_PROTOCOL)
        status = 0
    finally:
        os._exit(status)


def _portion(results: Callable[[Work, int], list[T]], work: Work) -> list[T]:
    """Run a portion here."""
    # A run is a web of references that ends all at once: looking for it meanwhile is a seventh of
    # the time.  What many of them left would no longer be in the processor's caches.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return results(work, _COLLECTED)
    finally:
        if collecting:
            gc.enable()
        gc.collect()


def _results(work: Work, collected: int) -> list[_Told]:
    """What comes of some seeds; garbage is collected after so many of them, 0 for never."""
    seeds, mutant, twice_of = work
    results: list[_Told] = []
    with planted(mutant):
        for number, seed in enumerate(seeds, 1):
            if collected and number % collected == 0:
                gc.collect()
            result = run(seed)
            repeated = bool(twice_of) and seed % twice_of == 0
            differs = repeated and run(seed).digest != result.digest
            results.append((result, repeated, differs))
    return results


def portions(seeds: Sequence[int], mutant: str = "", twice_of: int = 0) -> Iterator[Work]:
    """Seeds as so many pieces of work; the bug and the rest go to all of them."""
    for start in range(0, len(seeds), _PORTION):
        yield (list(seeds[start : start + _PORTION]), mutant, twice_of)


def run_many(
    seeds: Sequence[int],
    jobs: int = 1,
    mutant: str = "",
    bar: TextIO | None = None,
    enough: int = 0,
    twice_of: int = 20,
    seconds: float = 0.0,
) -> Summary:
    """Run seeds; the results come in the order of the seeds, however many processes there are.

    :param jobs: processes.
    :param mutant: the planted bug to have meanwhile; none if empty.
    :param bar: where to draw a bar; a line from time to time if it is no terminal.
    :param enough: stop after so many failures; 0 for never.
    :param seconds: stop after so long; 0 for never.
    :param twice_of: one of so many seeds is run twice, to see that it comes out the same; 0: none.

    Control-C ends it too; the summary is of what was done until then.
    """
    summary = Summary()
    began = time.perf_counter()
    drawn = 0.0
    drawing = bar is not None and bar.isatty()
    every_s = _BAR_EVERY_S if drawing else _LINE_EVERY_S
    draw = _draw if drawing else _tell
    work = portions(seeds, mutant, twice_of)
    try:
        for results in spread(_results, work, jobs):
            for result, repeated, differs in results:
                summary.add(result, repeated, differs)
                if bar is not None and (result.failed or differs):
                    _cry(bar, result)
            summary.elapsed_s = time.perf_counter() - began
            if bar is not None and (
                summary.elapsed_s - drawn > every_s or (drawing and summary.runs == len(seeds))
            ):
                drawn = summary.elapsed_s
                draw(bar, summary, len(seeds))
            if enough and len(summary.failures) >= enough:
                break
            if seconds and summary.elapsed_s >= seconds:
                break
    except KeyboardInterrupt:
        summary.interrupted = True
    if drawing and bar is not None:
        bar.write("\n")
    return summary


def spread(
    results: Callable[[Work, int], list[T]], work: Iterable[Work], jobs: int
) -> Iterator[list[T]]:
    """What comes of each piece of work, in the order of the work.

    :param results: does a piece; a function of a module, for it goes to other processes.  Its
        second argument is after how many seeds it is to collect garbage, 0 for never.
    :param jobs: processes; with one, this process does it all.
    """
    if jobs <= 1:
        for each in work:
            yield _portion(results, each)
        return
    # Forking a process that may have threads is not safe, and will not be the default any more.
    # Control-C is for the process that hands out the work: it ends the others.
    with multiprocessing.get_context("spawn").Pool(jobs, _begin) as pool:
        yield from pool.imap(partial(_apart, results), work)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Modules stay: the collector need not look at them, and copies share them.
    gc.collect()
    gc.freeze()
    gc.disable()


def _draw(bar: TextIO, summary: Summary, total: int) -> None:
    done = summary.runs / total if total else 1.0
    full = int(done * _BAR_WIDTH)
    left_s = summary.elapsed_s / done - summary.elapsed_s if done else 0.0
    bar.write(
        f"\r[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {summary.runs:,}/{total:,} seeds,"
        f" {len(summary.failures)} failed, {left_s:.0f} s left "
    )
    bar.flush()


def _cry(out: TextIO, result: Result) -> None:
    what = f"failed: {result.checker}" if result.failed else "came out differently the second time"
    out.write(f"\rseed {result.seed} {what}\n")


def _tell(out: TextIO, summary: Summary, total: int) -> None:
    left_s = summary.elapsed_s * (total / summary.runs - 1.0)
    out.write(
        f"{summary.runs:,} of {total:,} seeds, {len(summary.failures)} failed,"
        f" {left_s:.0f} s left\n"
    )
    out.flush()


def caught_at(
    mutant: str, limit: int, find: Callable[[int], Result] = run
) -> tuple[int, Result | None]:
    """The first seed below ``limit`` that notices a planted bug; -1 when none does."""
    with planted(mutant):
        for seed in range(limit):
            result = find(seed)
            if result.failed:
                return seed, result
    return -1, None
