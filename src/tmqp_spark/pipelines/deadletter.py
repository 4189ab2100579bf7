"""Lists dead letters: their original queues, their ages, and a list for sending them back.

A broker does not store why consumers put a message back.  It stores the queue to which the message
was pushed, its producer, the numbers of deliveries and put-backs, and the times.  Dead letters can
also be grouped by a header of the producer, for example with a kind or a tenant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Cause", "causes", "dead_letters", "times_to_death", "to_drive_back"]

_SCHEMA: Final = (
    "channel string, queue int, seq bigint, timestamp timestamp, message_id string, source string,"
    " value binary, delivery_count int, put_backs int, hops int, pushed_channel string,"
    " pushed_queue int"
)
_HEADERS: Final = "headers array<struct<key:string,value:string>>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Dead letters of one kind: ``by`` is the value of the requested header; None if no header was
    requested."""

    pushed: str
    source: str | None
    by: str | None
    deliveries: int
    put_backs: int
    count: int
    first: str
    last: str


def dead_letters(
    spark: SparkSession, options: dict[str, str], header: str | None = None
) -> DataFrame:
    """Return the dead letters of some queues, with a column ``by`` for the value of a header."""
    schema = f"{_SCHEMA}, {_HEADERS}" if header else _SCHEMA
    found = spark.read.format("tmqp").options(**options).schema(schema).load().where("hops > 0")
    if header:
        name = header.replace("\\", "\\\\").replace("'", "\\'")
        value = f"try_element_at(filter(headers, h -> h.key = '{name}'), 1).value"
        return found.selectExpr("*", f"{value} as by").drop("headers")
    return found.selectExpr("*", "cast(null as string) as by")


def causes(letters: DataFrame, most: int) -> list[Cause]:
    """Return the most frequent kinds."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everybody calls it; Spark

    rows = (
        letters.groupBy(
            "pushed_channel", "pushed_queue", "source", "by", "delivery_count", "put_backs"
        )
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.min("timestamp").cast("string").alias("first"),
            F.max("timestamp").cast("string").alias("last"),
        )
        .orderBy(F.desc("count"), "pushed_channel", "pushed_queue", "source", "by")
        .limit(most)
        .collect()
    )
    return [
        Cause(
            pushed=f"{row['pushed_channel']}/{row['pushed_queue']}",
            source=row["source"],
            by=row["by"],
            deliveries=row["delivery_count"],
            put_backs=row["put_backs"],
            count=row["count"],
            first=row["first"],
            last=row["last"],
        )
        for row in rows
    ]


def times_to_death(letters: DataFrame, spark: SparkSession, options: dict[str, str]) -> Any:
    """Return percentiles of the seconds from the first push to the move to the dead letter queue:
    rows of pushed (the queue), count, p50, p95 and most.

    This is only known of letters whose first message is still kept in that queue; it is found by id
    and producer.

    :param options: the options of a source of the queues to which they were pushed.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everybody calls it; Spark

    pushed = (
        spark.read.format("tmqp")
        .options(**options)
        .schema("channel string, queue int, timestamp timestamp, message_id string, source string")
        .load()
        .groupBy("channel", "queue", "message_id", "source")
        .agg(F.min("timestamp").alias("born"))
    )
    joined = letters.alias("dead").join(
        pushed.alias("live"),
        F.expr(
            "dead.pushed_channel = live.channel and dead.pushed_queue = live.queue and"
            " dead.message_id = live.message_id and dead.source <=> live.source and"
            " live.message_id <> ''"
        ),
    )
    life = (F.unix_micros("dead.timestamp") - F.unix_micros("live.born")) / 1e6
    return (
        joined.select(
            F.concat_ws(
                "/", "dead.pushed_channel", F.col("dead.pushed_queue").cast("string")
            ).alias("pushed"),
            life.alias("s"),
        )
        .groupBy("pushed")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.expr("percentile(s, 0.5)").alias("p50"),
            F.expr("percentile(s, 0.95)").alias("p95"),
            F.max("s").alias("most"),
        )
        .orderBy("pushed")
        .collect()
    )


def to_drive_back(letters: DataFrame) -> Iterator[dict[str, Any]]:
    """Yield each letter with the data for sending it back, in the order in which they became dead
    letters."""
    rows = letters.select(
        "channel",
        "queue",
        "seq",
        "timestamp",
        "message_id",
        "source",
        "by",
        "delivery_count",
        "put_backs",
        "hops",
        "pushed_channel",
        "pushed_queue",
    ).orderBy("timestamp", "channel", "queue", "seq")
    for row in rows.toLocalIterator():
        found = row.asDict()
        found["timestamp"] = found["timestamp"].isoformat()
        yield found
