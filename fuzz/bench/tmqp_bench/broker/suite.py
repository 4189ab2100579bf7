"""A run of the suite: who can take part, the rounds, the samples.

Theory of operation.  All contenders of a workload are measured in turn, once a round, each in a
process started for it and ended afterwards, so that none lives beside another.  The figure of a
contender is the median over the rounds; ratios are of medians of one run.
"""

from __future__ import annotations

import contextlib
import gc
import socket
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tmqp_bench.broker.comparison import Contender, Workload
from tmqp_bench.broker.loop import Consumer, LoadError, Producer, Sample, Shape, run
from tmqp_bench.broker.processes import ServerProcess, StartError, pin_load
from tmqp_bench.broker.servers import start, version_of
from tmqp_bench.broker.workloads import WORKLOADS

__all__ = ["BrokerPlan", "BrokerResults", "Figures", "chosen", "compare_brokers"]


@dataclass(frozen=True)
class BrokerPlan:
    """What to measure: names of workloads, rounds, seconds each; ``peers`` False for ours alone."""

    workloads: tuple[str, ...]
    rounds: int
    seconds: float
    peers: bool
    builds: tuple[str, ...]


@dataclass
class Figures:
    """What was measured of one contender under one workload."""

    samples: list[Sample] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Deliveries a second, the median."""
        return median([sample.rate for sample in self.samples])

    @property
    def cpu_ns(self) -> float:
        """Server's processor time for a delivery in nanoseconds, the median."""
        return median([sample.cpu_ns for sample in self.samples])

    @property
    def kernel_ns(self) -> float:
        """What of that was spent in the kernel, the median."""
        return median([sample.kernel_ns for sample in self.samples])

    @property
    def load_share(self) -> float:
        """How much of its core the load took, the median."""
        return median([sample.load_share for sample in self.samples])

    @property
    def spread(self) -> float:
        """The fastest round over the slowest."""
        rates = [sample.rate for sample in self.samples]
        return max(rates) / min(rates)

    def latency_s(self, share: float) -> float | None:
        """The latency that ``share`` of the messages of the median round stay within."""
        found: list[float] = []
        for sample in self.samples:
            ordered = sorted(sample.latencies_s)
            if ordered:
                found.append(ordered[min(len(ordered) - 1, int(share * len(ordered)))])
        return median(found) if found else None


@dataclass
class BrokerResults:
    """What came out: figures by (workload, contender), what is missing and why, versions."""

    plan: BrokerPlan
    figures: dict[tuple[str, str], Figures] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    pinned: bool = False

    def of(self, workload: Workload, contender: str) -> Figures | None:
        """The figures of a contender, None if there are none."""
        return self.figures.get((workload.name, contender))


def chosen(plan: BrokerPlan) -> list[Workload]:
    """The workloads of a plan, in the order of the report."""
    return [workload for workload in WORKLOADS if workload.name in plan.workloads]


def _able(plan: BrokerPlan, workload: Workload, results: BrokerResults) -> list[Contender]:
    able: list[Contender] = []
    for contender in workload.contenders:
        if contender.broker == "tmqp":
            if contender.setting.partition("+")[0] in plan.builds:
                able.append(contender)
            continue
        if not plan.peers:
            continue
        if contender.broker not in results.versions:
            version = version_of(contender.broker)
            if version is None:
                results.missing[contender.title] = "not installed"
                continue
            results.versions[contender.broker] = version
        able.append(contender)
    return able


@contextlib.contextmanager
def _running(contender: Contender) -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="tmqp-bench-") as name:
        server = start(contender.broker, contender.setting, Path(name))
        try:
            yield server
        finally:
            server.stop()


def _measure(contender: Contender, workload: Workload, seconds: float) -> tuple[Sample, int]:
    with _running(contender) as server:
        producers, consumers = contender.connect(
            server.port, workload.payload_bytes, workload.consumers
        )
        shape = Shape(
            workload.copies or workload.consumers,
            workload.window,
            contender.warm_up_s,
            seconds,
            workload.each,
        )
        gc.collect()
        gc.disable()
        try:
            sample = run(producers, consumers, shape, server.spent)
            memory = server.memory_bytes()
        finally:
            gc.enable()
            ends: list[Producer | Consumer] = [*producers, *consumers]
            for end in ends:
                end.socket.close()
                beside: socket.socket | None = getattr(end, "beside", None)
                if beside is not None:
                    beside.close()
    return sample, memory


def _measure_twice(contender: Contender, workload: Workload, seconds: float) -> tuple[Sample, int]:
    """Measure; once more if the connections fail, for somebody else may have taken the port."""
    try:
        return _measure(contender, workload, seconds)
    except (StartError, OSError):
        return _measure(contender, workload, seconds)


def compare_brokers(plan: BrokerPlan, progress: Callable[[str], None]) -> BrokerResults:
    """Measure what the plan says.

    :param progress: called with a short text as the measurements go by.
    """
    results = BrokerResults(plan)
    results.pinned = pin_load()
    for workload in chosen(plan):
        able = _able(plan, workload, results)
        failed: set[str] = set()
        for number in range(plan.rounds):
            first = number % len(able) if able else 0
            for contender in able[first:] + able[:first]:
                if contender.title in failed:
                    continue
                progress(f"{workload.name}: {contender.title}, {number + 1} of {plan.rounds}")
                try:
                    sample, memory = _measure_twice(contender, workload, plan.seconds)
                except (StartError, LoadError, OSError) as error:
                    failed.add(contender.title)
                    results.missing[f"{contender.title}, {workload.name}"] = str(error)
                    continue
                key = workload.name, contender.title
                figures = results.figures.setdefault(key, Figures())
                figures.samples.append(sample)
                figures.memory_bytes.append(memory)
    progress("")
    return results
