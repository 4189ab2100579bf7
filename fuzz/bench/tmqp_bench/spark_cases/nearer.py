"""The measurements of reads that spare the network: on the broker's machine, and of few columns."""

from __future__ import annotations

from functools import partial
from typing import Final

from tmqp_bench.spark_cases.aims import Record, ratios
from tmqp_bench.spark_cases.reads import whole_range
from tmqp_bench.spark_cases.stage import Stage, write_nowhere
from tmqp_spark.options import ConnectionOptions, SourceOptions, read_options
from tmqp_spark.ranges import read_answers
from tmqp_spark.schema import project
from tmqp_spark.transport import BrokerLink

__all__ = ["local_reads", "pruned_reads", "value_bytes"]

_OVER: Final = "by the connection"
_LOCAL: Final = "with journalDir"
_WHOLE: Final = "whole messages"
_PRUNED: Final = "with pruneAtBroker"
_VALUE: Final = "value binary"
_LARGE_LONGER: Final = 2
_LONGER: Final = 4


def local_reads(stage: Stage, record: Record) -> None:
    """Messages of 1 KiB out of the broker's database, beside those that the broker sends."""
    queue, count = stage.queue(1_024, _LARGE_LONGER)
    frames = {
        _OVER: stage.read(queue, _VALUE),
        _LOCAL: stage.read(queue, _VALUE, journalDir=str(stage.broker.data)),
    }
    spent = stage.contest(record, {name: partial(write_nowhere, frames[name]) for name in frames})
    size = count * 1_024
    for name, each in spent.items():
        record.figure(name, count, size, each)
    rates = [size / each.wall_s / 1e9 for each in spent[_LOCAL]]
    record.at_least("payload/s of 1 KiB each", 0.8, rates, "GB/s")
    record.at_most(
        "processor time of all, by that of a read by the connection",
        0.64,
        ratios(spent[_LOCAL], spent[_OVER], "all_s"),
    )


def pruned_reads(stage: Stage, record: Record) -> None:
    """Values of 100 bytes that are cut out by the broker, beside those that come in messages."""
    queue, count = stage.queue(100, _LONGER)
    frames = {
        _WHOLE: stage.read(queue, _VALUE),
        _PRUNED: stage.read(queue, _VALUE, pruneAtBroker="true"),
    }
    spent = stage.contest(record, {name: partial(write_nowhere, frames[name]) for name in frames})
    for name, each in spent.items():
        record.figure(name, count, count * 100, each)
    whole, pruned = value_bytes(stage.connection, queue)
    record.notes.append(
        f"a message takes {whole / count:.1f} bytes of the network whole, {pruned / count:.1f} cut"
    )
    record.at_most("bytes received, by those of whole messages", 0.5, [pruned / whole])


def value_bytes(connection: ConnectionOptions, queue: str) -> tuple[int, int]:
    """The bytes that a read of all values of a queue receives: whole messages, and values that the
    broker has cut out.

    :param queue: ``channel/queue``.
    """
    options = read_options(SourceOptions, {"subscribe": queue})
    columns = project([("value", "binary", True)]).at_broker
    with BrokerLink(connection) as link:
        wanted = whole_range(link, options)

        def received(names: str | None) -> int:
            answers = read_answers(link, wanted, options, columns=names)
            return sum(len(data) - start for data, start in answers)

        return received(None), received(columns)
