"""``python -m tmqp_bench codec``: the codec of both builds beside other projects' parsers.

Theory of operation.  Three processes are started: one with the interpreted build of ``tmqp``, one
with the compiled build, one with the peers.  They measure in turn, never two at once: in every
round each case runs once, a round begins one case later than the round before, and the figure of a
case is the median over the rounds.  So a machine whose speed drifts slows all cases alike, and
ratios hold where nanoseconds do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from tmqp_bench.work import OUR_TITLES, PEER_TITLES

__all__ = ["BUILDS", "Outcome", "Plan", "compare", "stale_modules"]

ROOT: Final = Path(__file__).resolve().parents[3]
BUILDS: Final = ("compiled", "interpreted")
#: Where each build is, relative to the project.
PLACES: Final = {"compiled": "build/compiled", "interpreted": "src"}


@dataclass(frozen=True)
class Plan:
    """What to measure: sizes in bytes, the number of rounds, seconds for each case and round."""

    payload_sizes: tuple[int, ...]
    rounds: int
    seconds: float
    builds: tuple[str, ...] = BUILDS


@dataclass
class Outcome:
    """What came out.

    ``samples``: nanoseconds a message by (build or "peers", case, payload size), one a round.
    ``missing``: what could not be measured, and why, by name.
    """

    plan: Plan
    samples: dict[tuple[str, str, int], list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    python: str = ""

    def ns(self, group: str, case: str, payload_bytes: int) -> float | None:
        """The median, None where nothing was measured."""
        found = self.samples.get((group, case, payload_bytes))
        return median(found) if found else None


class _Worker:
    """One process that measures: see :mod:`tmqp_bench.worker`."""

    def __init__(self, group: str, place: Path) -> None:
        bench = Path(__file__).resolve().parents[1]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(place), str(bench)]),
            "PYTHONHASHSEED": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tmqp_bench.worker", group],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.about: dict[str, Any] = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            return {"error": f"the measuring process ended with status {code}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def measure(self, case: str, payload_bytes: int, seconds: float) -> dict[str, Any]:
        """Run one case once; the answer holds ``ns`` or ``error``."""
        assert self._process.stdin is not None
        asked = {"case": case, "payload_bytes": payload_bytes, "seconds": seconds}
        try:
            print(json.dumps(asked), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return self._read()
        return self._read()

    def close(self) -> None:
        """Let the process end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def stale_modules(place: Path) -> list[str]:
    """The modules whose sources have changed since the build in ``place`` was made."""
    changed: list[str] = []
    for source in sorted((ROOT / "src" / "tmqp").glob("*.py")):
        copy = place / "tmqp" / source.name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            changed.append(source.name)
    return changed


def _start(outcome: Outcome) -> dict[str, _Worker]:
    """Start what the plan needs; whatever cannot be is missing, by name."""
    workers: dict[str, _Worker] = {}
    for build in outcome.plan.builds:
        place = ROOT / PLACES[build]
        name = f"the {build} build"
        if not (place / "tmqp").is_dir():
            outcome.missing[name] = f"nothing is in {PLACES[build]}: make compiled"
            continue
        stale = stale_modules(place)
        if stale:
            outcome.missing[name] = f"made from other sources ({', '.join(stale)}): make compiled"
            continue
        worker = _Worker("ours", place)
        if "error" in worker.about:
            outcome.missing[name] = str(worker.about["error"])
        elif worker.about["compiled"] is not (build == "compiled"):
            outcome.missing[name] = f"{PLACES[build]} holds the other build"
        else:
            workers[build] = worker
            outcome.python = str(worker.about["python"])
            continue
        worker.close()
    peers = _Worker("peers", ROOT / PLACES["interpreted"])
    workers["peers"] = peers
    if "error" in peers.about:
        outcome.missing["the peers"] = str(peers.about["error"])
    for distribution, version in peers.about.get("versions", {}).items():
        if version is None:
            outcome.missing[distribution] = "not installed: pip install 'tmqp[bench]'"
        else:
            outcome.versions[distribution] = version
    return workers


def _turns(workers: dict[str, _Worker], outcome: Outcome) -> list[tuple[str, str, int]]:
    """What is measured in every round; what is compared stands close together."""
    turns: list[tuple[str, str, int]] = []
    for size in outcome.plan.payload_sizes:
        for case in OUR_TITLES:
            turns.extend([(build, case, size) for build in workers if build != "peers"])
        for case in PEER_TITLES:
            peer = case.removesuffix("-masked")
            if peer in outcome.versions:
                turns.append(("peers", case, size))
    return turns


def compare(plan: Plan, progress: Callable[[str], None]) -> Outcome:
    """Measure what the plan says.

    :param progress: called with a short text as the rounds go by.
    """
    outcome = Outcome(plan)
    progress("starting")
    workers = _start(outcome)
    try:
        turns = _turns(workers, outcome)
        for number in range(plan.rounds):
            progress(f"round {number + 1} of {plan.rounds}")
            first = number % len(turns) if turns else 0
            for group, case, size in turns[first:] + turns[:first]:
                answer = workers[group].measure(case, size, plan.seconds)
                if "error" in answer:
                    outcome.missing[f"{case}, {size} bytes"] = str(answer["error"])
                else:
                    outcome.samples.setdefault((group, case, size), []).append(answer["ns"])
    finally:
        for worker in workers.values():
            worker.close()
        progress("")
    return outcome
