"""The measurements of batch writes: beside a writer of Rows, and once beside at least once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tmqp.models import QueueOptions
from tmqp_bench.spark_cases.aims import Record, ratios
from tmqp_bench.spark_cases.stage import Stage
from tmqp_client import sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["exactly_once", "row_writer"]

_PAYLOAD: Final = 100


def row_writer(stage: Stage, record: Record) -> None:
    """The sink, with payloads alone, beside a writer that is handed Rows.

    Into a queue that keeps nothing, and nobody waits for acknowledgements: what is measured is the
    way to the broker.
    """
    count = max(1, stage.plan.messages // 2)
    _create(stage, "pushed", durable=False)
    frame = _rows(stage, count)
    plain = {"guarantee": "at_least_once", "ack": "none"}
    more: dict[str, dict[str, str]] = {"tmqp": plain, "a Row each": {}}
    forms = {"tmqp": "tmqp", "a Row each": "tmqp_bench_row_sink"}
    actions = {
        name: partial(_write, stage, frame, "pushed", forms[name], more[name]) for name in forms
    }
    found = stage.contest(record, actions, warm_up=2, after=lambda: _clear(stage, "pushed"))
    for name, each in found.items():
        record.figure(name, count, count * _PAYLOAD, each)
    ours = found["tmqp"]
    record.at_least(
        "processor time of Spark to write, by a writer of Rows",
        7,
        ratios(found["a Row each"], ours, "spark_s"),
    )
    record.at_least(
        "written by two cores' processor time of Spark",
        2.5,
        [None if not each.spark_s else count / (each.spark_s / 2) / 1e6 for each in ours],
        "M messages/s",
    )
    record.notes.append(
        "how fast messages arrive is the broker's doing: it takes them in while Spark waits"
    )


def exactly_once(stage: Stage, record: Record) -> None:
    """The sink exactly once beside at least once, both into a durable queue."""
    count = max(1, stage.plan.messages // 4)
    _create(stage, "stored", durable=True)
    frame = _rows(stage, count)
    found = stage.contest(
        record,
        {
            name.replace("_", " "): partial(
                _write, stage, frame, "stored", "tmqp", {"guarantee": name}
            )
            for name in ("exactly_once", "at_least_once")
        },
        warm_up=2,
        after=lambda: _clear(stage, "stored"),
    )
    for name, each in found.items():
        record.figure(name, count, count * _PAYLOAD, each)
    record.at_least(
        "messages/s written exactly once, by at least once",
        0.9,
        ratios(found["at least once"], found["exactly once"]),
    )


def _rows(stage: Stage, count: int) -> DataFrame:
    """Payloads of 100 bytes, made beforehand, so that making them is not measured."""
    parts = 2 * stage.plan.cores
    text = "lpad(cast(id as string), 100, 'payload ')"
    frame = stage.spark.range(0, count, 1, parts).selectExpr(f"cast({text} as binary) as value")
    kept = frame.persist()
    kept.count()
    return kept


def _create(stage: Stage, channel: str, *, durable: bool) -> None:
    with sync.connect(stage.broker.url, name="tmqp_bench spark") as client:
        client.create_queue(channel, 1, QueueOptions(durable=durable), status="push")


def _clear(stage: Stage, channel: str) -> None:
    """Have the broker forget what was written: a deep queue is not what is measured."""
    with sync.connect(stage.broker.url, name="tmqp_bench spark") as client:
        client.clear_queue(channel, 1)


def _write(stage: Stage, frame: DataFrame, channel: str, form: str, more: dict[str, Any]) -> None:
    writer = frame.write.format(form).mode("append")
    writer.options(url=stage.broker.url, channel=channel, queue=1, **more).save()
