"""The measurements of batch reads: beside rows in Python, beside Parquet, and alone."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

from tmqp_bench.spark_cases.aims import Record, ratios
from tmqp_bench.spark_cases.processes import Spent
from tmqp_bench.spark_cases.rivals import PLAIN_COLUMNS
from tmqp_bench.spark_cases.stage import Stage, write_nowhere
from tmqp_spark.arrow import BatchBuilder, read_portion
from tmqp_spark.catalog import Catalog, Subscription
from tmqp_spark.options import SourceOptions, read_options
from tmqp_spark.ranges import QueueRange, read_answers, read_range
from tmqp_spark.schema import project
from tmqp_spark.transport import BrokerLink
from tmqp_spark.workers import settle_memory

__all__ = ["counting", "decoding", "large_reads", "parquet", "rows", "tasks", "whole_range"]

_FIVE: Final = "queue int, seq bigint, timestamp timestamp, message_id string, value binary"
_NINE: Final = (
    "channel string, queue int, seq bigint, timestamp timestamp, message_id string, source string,"
    " high_priority boolean, delivery_count int, value binary"
)
_DECODED: Final = [("seq", "bigint", True), ("queue", "int", True), ("value", "binary", True)]
#: How many times as many messages are read where the rate is asked for, and rounds to warm up.
_LONGER: Final = 4
_LARGE_LONGER: Final = 2
_WARM_UP: Final = 2
_TASKS: Final = 100
_MESSAGES_A_TASK: Final = 100


def rows(stage: Stage, record: Record) -> None:
    """Arrow batches beside tuples and Rows."""
    queue, count = stage.queue(100, _LONGER)
    local = "tmqp, with journalDir"
    frames = {
        "tmqp": stage.read(queue, PLAIN_COLUMNS),
        local: stage.read(queue, PLAIN_COLUMNS, journalDir=str(stage.broker.data)),
        "a tuple each": stage.read(queue, PLAIN_COLUMNS, "tmqp_bench_tuples"),
        "a Row each": stage.read(queue, PLAIN_COLUMNS, "tmqp_bench_rows"),
    }
    actions = {name: partial(write_nowhere, frames[name]) for name in frames}
    spent = stage.contest(record, actions, warm_up=_WARM_UP)
    for name, each in spent.items():
        record.figure(name, count, count * 100, each)
    for ours, words in (("tmqp", "3 columns"), (local, "with journalDir")):
        for rival, bound in (("a tuple each", 4), ("a Row each", 7)):
            times = ratios(spent[rival], spent[ours])
            record.at_least(f"messages/s, {words}, by {rival}", bound, times)


def parquet(stage: Stage, record: Record) -> None:
    """Processor time of a read, beside a scan of the same columns in Parquet files."""
    queue, count = stage.queue(100, _LONGER)
    folder = str(stage.folder / "scanned.parquet")
    stage.read(queue, _NINE).write.parquet(folder, mode="overwrite")
    kept = stage.spark.read.parquet(folder)
    actions: dict[str, Any] = {}
    for words, schema in (("5 columns", _FIVE), ("9 columns", _NINE)):
        names = [each.split()[0] for each in schema.split(", ")]
        actions[f"tmqp, {words}"] = stage.read(queue, schema)
        actions[f"Parquet, {words}"] = kept.select(names)
    spent = stage.contest(record, {name: partial(write_nowhere, actions[name]) for name in actions})
    for name, each in spent.items():
        record.figure(name, count, count * 100, each)
    for words, bound in (("5 columns", 2.0), ("9 columns", 2.0)):
        times = ratios(spent[f"tmqp, {words}"], spent[f"Parquet, {words}"], "spark_s")
        record.at_most(f"processor time, {words}, by a Parquet scan", bound, times)


def decoding(stage: Stage, record: Record) -> None:
    """What Python needs for a message, without Spark: from the socket, and from memory."""
    queue, count = stage.queue(100)
    options = read_options(SourceOptions, {"subscribe": queue})
    settle_memory()  # as workers do
    with BrokerLink(stage.connection) as link:
        wanted = whole_range(link, options)
        answers = list(read_answers(link, wanted, options))
        builder = BatchBuilder(
            project(_DECODED), wanted.channel, wanted.queue, wanted.incarnation, queue
        )

        def from_tcp() -> None:
            for portion in read_range(link, wanted, options):
                builder.build(portion)

        def from_memory() -> None:
            for answer in answers:
                builder.build(read_portion([answer], options.checksums, queue))

        spent = {
            "from TCP": _own_rounds(stage, from_tcp),
            "from memory": _own_rounds(stage, from_memory),
        }
    for name, bound in (("from TCP", 110), ("from memory", 70)):
        record.figure(name, count, count * 100, spent[name])
        record.at_most(
            f"Python's processor time a message {name}, 3 columns",
            bound,
            [
                None if each.python_s is None else each.python_s / count * 1e9
                for each in spent[name]
            ],
            "ns",
        )


def large_reads(stage: Stage, record: Record) -> None:
    """Messages of 1 KiB, beside a reader that only takes what comes."""
    queue, count = stage.queue(1_024, _LARGE_LONGER)
    frame = stage.read(queue, "value binary")
    options = read_options(SourceOptions, {"subscribe": queue})
    with BrokerLink(stage.connection) as link:
        wanted = whole_range(link, options)

        def only_take() -> None:
            for _ in read_answers(link, wanted, options):
                pass

        spent = stage.contest(
            record, {"tmqp": lambda: write_nowhere(frame), "bytes only, no Spark": only_take}
        )
    for name, each in spent.items():
        record.figure(name, count, count * 1_024, each)
    size = count * 1_024 / 1e9
    rates = [size / each.wall_s for each in spent["tmqp"]]
    record.at_least("payload/s of 1 KiB each", 0.6, rates, "GB/s")


def counting(stage: Stage, record: Record) -> None:
    """A count that reads one column, beside one that reads all."""
    queue, count = stage.queue(100, _LONGER)
    narrow, wide = stage.read(queue, "seq bigint"), stage.read(queue)
    spent = stage.contest(record, {"seq alone": narrow.count, "all columns": wide.count})
    for name, each in spent.items():
        record.figure(name, count, count * 100, each)
    record.at_least(
        "processor time of count() of all columns, by that of seq alone",
        3,
        ratios(spent["all columns"], spent["seq alone"], "spark_s"),
    )


def tasks(stage: Stage, record: Record) -> None:
    """What a task costs in its Python worker, whatever it reads."""
    queue, count = stage.queue(100)
    end = min(count, _TASKS * _MESSAGES_A_TASK) + 1
    frame = stage.read(
        queue,
        "seq bigint",
        endingOffsets=f'{{"{queue}": {end}}}',
        minPartitions=_TASKS,
    )
    number = frame.rdd.getNumPartitions()
    spent = stage.contest(record, {"tasks": lambda: write_nowhere(frame)})
    record.figure("tasks", number, 0, spent["tasks"])
    times = [
        None if each.python_s is None else each.python_s / number * 1e3 for each in spent["tasks"]
    ]
    record.at_most(f"Python's processor time a task of {_MESSAGES_A_TASK} messages", 3, times, "ms")


def whole_range(link: BrokerLink, options: SourceOptions) -> QueueRange:
    """All that is kept of the one queue that the options name."""
    (state,) = Catalog(link, Subscription(options)).look().values()
    return QueueRange(
        state.channel, state.queue, state.incarnation, state.earliest, state.latest + 1, state.bytes
    )


def _own_rounds(stage: Stage, action: Any) -> list[Spent]:
    """Rounds in this process: its processor time is Python's."""
    found = []
    for number in range(1 + stage.plan.rounds):
        began, used = time.perf_counter(), time.process_time()
        action()
        spent = Spent(time.perf_counter() - began, 0.0, time.process_time() - used, None)
        if number:
            found.append(spent)
    return found
