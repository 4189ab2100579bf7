"""The measurements of streams: what a trigger costs, and what a query that rests leaves."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tmqp_bench.spark_cases.aims import Record
from tmqp_bench.spark_cases.processes import Spent
from tmqp_bench.spark_cases.stage import Stage
from tmqp_client import sync
from tmqp_spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["backlog", "triggers"]

_ROWS: Final = 500
_TRIGGERS: Final = 20
_WARM_UP: Final = 10
_PATIENCE_S: Final = 120.0
_GROUP: Final = "bench"


def triggers(stage: Stage, record: Record) -> None:
    """The length of a trigger with few rows, beside Spark's own ``rate-micro-batch``.

    Both have more to read at any time, so triggers follow each other without rest.
    """
    needed = (_WARM_UP + _TRIGGERS) * 2 * (stage.plan.rounds + 1) * _ROWS
    stage.broker.create("triggers", 1)
    stage.push("triggers", 1, 100, needed)
    ours = (
        stage.spark.readStream.format("tmqp")
        # Each round has a checkpoint of its own, and continues where the group is.
        .options(url=stage.broker.url, subscribe="triggers/1", startingOffsets="committed")
        .options(group=_GROUP, maxOffsetsPerTrigger=_ROWS)
        .load()
    )
    rate = (
        stage.spark.readStream.format("rate-micro-batch")
        .options(rowsPerBatch=_ROWS, numPartitions=1)
        .load()
    )
    found: dict[str, list[Spent]] = {"tmqp": [], "rate-micro-batch": []}
    for number in range(1 + stage.plan.rounds):
        for name, frame in (("tmqp", ours), ("rate-micro-batch", rate)):
            spent = _run(stage, frame, f"{name}-{number}")
            if not number:
                continue  # the JVM has yet to compile what it runs
            found[name].append(spent)
            stage.say(
                f"{record.case}, round {number}: {name} {spent.wall_s * 1e3:.0f} ms a trigger",
                case=record.case,
                variant=name,
                wall_s=round(spent.wall_s, 4),
            )
    for name, each in found.items():
        record.figure(f"{name}, a trigger", 1, 0, each)
    pairs = zip(found["tmqp"], found["rate-micro-batch"], strict=True)
    record.at_most(
        f"a trigger of {_ROWS} messages, by one of rate-micro-batch",
        1.3,
        [one.wall_s / other.wall_s for one, other in pairs],
    )


def backlog(stage: Stage, record: Record) -> None:
    """What the broker counts as unread a second after a query has read everything."""
    stage.broker.create("idle", 1)
    frame = (
        stage.spark.readStream.format("tmqp")
        .options(url=stage.broker.url, subscribe="idle/1", startingOffsets="earliest")
        .options(group=_GROUP)
        .load()
    )
    values: list[float | None] = []
    query = _start(stage, frame, "idle")
    try:
        for number in range(stage.plan.rounds):
            stage.push("idle", 1, 100, 1_000)
            _until(query, lambda wanted=number + 1: _rows(query) >= wanted * 1_000)
            time.sleep(1.0)
            with sync.connect(stage.broker.url, name="tmqp_bench spark") as client:
                (entry,) = client.list_groups("idle", _GROUP)
            values.append(float(entry.behind or 0))
            stage.say(f"{record.case}, round {number + 1}: {values[-1]:.0f} behind")
    finally:
        query.stop()
    record.at_most("unread messages after an idle second", 0, values, "")


def _start(stage: Stage, frame: DataFrame, name: str) -> Any:
    place = str(stage.folder / "checkpoints" / name)
    return frame.writeStream.format("noop").option("checkpointLocation", place).start()


def _run(stage: Stage, frame: DataFrame, name: str) -> Spent:
    """Run a query for some triggers; the median of one of them."""
    query = _start(stage, frame, name)
    try:
        _until(query, lambda: _number(query) >= _WARM_UP)
        before = stage.usage()
        _until(query, lambda: _number(query) >= _WARM_UP + _TRIGGERS)
        spent = stage.usage().since(before)
        told = [
            each["durationMs"]["triggerExecution"]
            for each in query.recentProgress
            if each["batchId"] >= _WARM_UP and each["numInputRows"]
        ]
    finally:
        query.stop()
    each = [None if value is None else value / _TRIGGERS for value in _processor(spent)]
    return Spent(median(told) / 1e3, *each)


def _processor(spent: Spent) -> tuple[float | None, float | None, float | None]:
    return spent.jvm_s, spent.python_s, spent.broker_s


def _number(query: Any) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])


def _rows(query: Any) -> int:
    return sum(int(each["numInputRows"]) for each in query.recentProgress)


def _until(query: Any, reached: Any) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not reached():
        if query.exception() is not None:
            raise query.exception()
        if not query.isActive or time.monotonic() > deadline:
            raise SparkError("a streaming query did not get on")
        time.sleep(0.02)
