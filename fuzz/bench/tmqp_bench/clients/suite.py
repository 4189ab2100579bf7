"""The comparison: which libraries, under which loads, in turn, and what came out."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from tmqp_bench.broker.processes import ServerProcess, StartError, pin_load
from tmqp_bench.broker.servers import start, version_of
from tmqp_bench.clients.load import Figures
from tmqp_bench.codec import PLACES, ROOT

__all__ = [
    "LIBRARIES",
    "LOADS",
    "ClientPlan",
    "ClientResults",
    "Library",
    "Load",
    "Results",
    "compare",
]

_WARM_UP_S: Final = 0.5
#: What a run may take beyond its seconds: starting, connecting, closing.
_SPARE_S: Final = 60.0
_TRIES: Final = 3


@dataclass(frozen=True)
class Load:
    """``kind`` as in :data:`tmqp_bench.clients.load.KINDS`; ``window`` messages in progress."""

    name: str
    title: str
    kind: str
    window: int


@dataclass(frozen=True)
class Library:
    """A client library, and the server it talks to: its name and setting for ``servers.start``.

    ``build`` is where our packages come from; others have none.
    """

    title: str
    name: str
    server: str
    setting: str
    build: str = ""


#: In the order of the report.
LOADS: Final = (
    Load("stream-1000", "publish and consume, at most once, 1,000 in flight", "stream", 1_000),
    Load("stream-1", "publish and consume, at most once, 1 in flight", "stream", 1),
    Load(
        "confirmed-100",
        "100 tasks await their confirms, the consumer acknowledges",
        "confirmed",
        100,
    ),
    Load("batch-1000", "batches of 1,000 confirmed, the consumer acknowledges", "batch", 1_000),
    Load("request-1", "request and response, 1 in flight", "request", 1),
    Load("request-100", "request and response, 100 in flight", "request", 100),
)
LIBRARIES: Final = (
    Library("tmqp", "tmqp", "tmqp", "compiled", "compiled"),
    Library("tmqp, client interpreted", "tmqp", "tmqp", "compiled", "interpreted"),
    Library("nats-py", "nats-py", "nats", "jetstream"),
    Library("aio-pika", "aio-pika", "rabbitmq", ""),
    Library("redis-py", "redis-py", "redis", "memory"),
)


@dataclass(frozen=True)
class ClientPlan:
    """What to measure; without ``peers`` ours alone."""

    loads: tuple[str, ...]
    rounds: int
    seconds: float
    payload_bytes: int
    peers: bool


@dataclass
class Results:
    """All rounds of one library under one load."""

    rounds: list[Figures] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Messages a second, the median."""
        return median(each.rate for each in self.rounds)

    @property
    def client_cpu_us(self) -> float:
        """Processor time of both clients for one message, the median."""
        return median(each.client_cpu_s / max(each.messages, 1) * 1e6 for each in self.rounds)

    def latency_us(self, place: int) -> float:
        """A percentile, the median of the rounds; ``place`` 0, 1, 2 for 50, 99, 99.9."""
        return median(each.latencies_us[place] for each in self.rounds)

    @property
    def spread(self) -> float:
        """The quickest round over the slowest."""
        rates = [each.rate for each in self.rounds]
        return max(rates) / min(rates)


@dataclass
class ClientResults:
    """What came out: figures by (load, library), what is missing and why, versions."""

    plan: ClientPlan
    figures: dict[tuple[str, str], Results] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    pinned: bool = False


def _able(plan: ClientPlan, results: ClientResults) -> list[Library]:
    able: list[Library] = []
    for library in LIBRARIES:
        if library.build:
            there = all(
                (ROOT / PLACES[build]).is_dir() for build in (library.build, library.setting)
            )
            if there:
                able.append(library)
            else:
                results.missing[library.title] = "make compiled"
            continue
        if not plan.peers:
            continue
        try:
            version = importlib.metadata.version(library.name.replace("redis-py", "redis"))
        except importlib.metadata.PackageNotFoundError:
            results.missing[library.title] = "not installed"
            continue
        server = version_of(library.server)
        if server is None:
            results.missing[library.title] = f"the server {library.server} is not installed"
            continue
        results.versions[library.title] = f"{version} with {library.server} {server}"
        able.append(library)
    return able


@contextlib.contextmanager
def _running(library: Library) -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="tmqp-bench-") as name:
        server = start(library.server, library.setting, Path(name))
        try:
            yield server
        finally:
            server.stop()


def _measure(library: Library, load: Load, plan: ClientPlan) -> Figures:
    place = ROOT / PLACES[library.build or "interpreted"]
    here = Path(__file__).resolve().parents[2]
    with _running(library) as server:
        words = [library.name, load.kind, str(server.port), str(load.window)]
        words += [str(plan.payload_bytes), str(_WARM_UP_S), str(plan.seconds)]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tmqp_bench.clients.worker", *words],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(here)])},
                timeout=_WARM_UP_S + plan.seconds + _SPARE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StartError("it did not end in time") from None
    if done.returncode:
        raise StartError(" / ".join(done.stderr.strip().splitlines()[-2:]) or "it said nothing")
    found = json.loads(done.stdout)
    return Figures(
        found["messages"], found["seconds"], found["client_cpu_s"], found["latencies_us"]
    )


def compare(plan: ClientPlan, progress: Callable[[str], None]) -> ClientResults:
    """Measure what the plan says.

    :param progress: called with a short text as the measurements go by.
    """
    results = ClientResults(plan)
    results.pinned = pin_load()
    able = _able(plan, results)
    for load in LOADS:
        if load.name not in plan.loads:
            continue
        failed: set[str] = set()
        for number in range(plan.rounds):
            first = number % len(able) if able else 0
            for library in able[first:] + able[:first]:
                if library.title in failed:
                    continue
                progress(f"{load.name}: {library.title}, {number + 1} of {plan.rounds}")
                figures = _try(library, load, plan, results)
                if figures is None:
                    failed.add(library.title)
                    continue
                key = load.name, library.title
                results.figures.setdefault(key, Results()).rounds.append(figures)
    progress("")
    return results


def _try(library: Library, load: Load, plan: ClientPlan, results: ClientResults) -> Figures | None:
    """Measure; once more if that fails, for somebody else may have taken the port."""
    for attempt in range(_TRIES):
        try:
            return _measure(library, load, plan)
        except (StartError, OSError) as error:
            if attempt + 1 == _TRIES:
                results.missing[f"{library.title}, {load.name}"] = str(error)
    return None
