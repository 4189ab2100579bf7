"""Metrics of queues: rates, sizes and latencies over time, from kept messages.

The arrival time at the broker is stored with each message, so arrivals are exact.  The latency
before that is known if the producer wrote the time of sending into a header.  The broker reports
the current depth of a queue, and the lag of its groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tmqp.models import OffsetsInformation
from tmqp_spark.errors import SparkError
from tmqp_spark.options import parse_duration_ms
from tmqp_spark.pipelines.plot import Panel, plot_svg

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from tmqp_client.sync import Client

__all__ = [
    "Bucket",
    "Depth",
    "QueueTotal",
    "depths",
    "measure",
    "messages_of",
    "metrics_svg",
    "totals",
]

#: The most rows of the table over time that are fetched.
_MOST_ROWS: Final = 200_000
_COLUMNS: Final = "channel string, queue int, timestamp timestamp, value binary"
_HEADERS: Final = "headers array<struct<key:string,value:string>>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The messages that arrived in a queue during ``seconds`` from ``at_s`` (Unix time) on.

    Latencies are milliseconds from the time in the producer's header to the arrival at the broker;
    None if no message has this header.
    """

    at_s: float
    seconds: float
    channel: str
    queue: int
    messages: int
    bytes: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTotal:
    """A queue over the whole time; ``peak_rate`` is the rate of its fullest bucket."""

    channel: str
    queue: int
    messages: int
    bytes: int
    buckets: int
    peak_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The current depth of a queue: messages ``waiting`` for consumers, ``kept`` for readers, and
    by group how many of the kept ones are unread."""

    channel: str
    queue: int
    waiting: int
    kept: int
    groups: dict[str, int]


def messages_of(
    spark: SparkSession, options: dict[str, str], archive: str | None, header: str | None
) -> DataFrame:
    """Return the columns to measure, of kept messages or of an archive."""
    if archive is not None:
        return spark.read.parquet(archive)
    schema = f"{_COLUMNS}, {_HEADERS}" if header else _COLUMNS
    return spark.read.format("tmqp").options(**options).schema(schema).load()


def measure(messages: DataFrame, bucket: str, header: str | None = None) -> list[Bucket]:
    """Measure numbers and latencies of messages in buckets of time.

    :param messages: with channel, queue, timestamp, value, and headers if ``header`` is given.
    :param bucket: the length of a bucket, such as ``1m``.
    :param header: the header with the time of sending, in ms since 1970.
    :raises SparkError: if there would be too many rows.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everybody calls it; Spark

    seconds = parse_duration_ms(bucket) / 1000
    if seconds <= 0:
        raise SparkError("a bucket is longer than nothing: --bucket 1m")
    if header:
        sent = F.expr(
            f"try_cast(try_element_at(filter(headers, h -> h.key = {_quoted(header)}), 1).value"
            " as double)"
        )
        latency = F.unix_micros("timestamp") / 1000.0 - sent
    else:
        latency = F.lit(None).cast("double")
    at = F.floor(F.unix_micros("timestamp") / (seconds * 1e6)) * seconds
    rows = (
        messages.select(
            "channel", "queue", at.alias("at"), F.length("value").alias("size"), latency.alias("ms")
        )
        .groupBy("at", "channel", "queue")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.sum("size").alias("bytes"),
            F.expr("percentile(ms, array(0.5, 0.95, 0.99))").alias("ms"),
        )
        .orderBy("at", "channel", "queue")
        .limit(_MOST_ROWS + 1)
        .collect()
    )
    if len(rows) > _MOST_ROWS:
        raise SparkError(f"that is over {_MOST_ROWS:,} rows: take longer buckets (--bucket 1h)")
    return [_bucket(row, seconds) for row in rows]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _bucket(row: Any, seconds: float) -> Bucket:
    p50, p95, p99 = row["ms"] or (None, None, None)
    return Bucket(
        at_s=float(row["at"]),
        seconds=seconds,
        channel=str(row["channel"]),
        queue=int(row["queue"]),
        messages=row["messages"],
        bytes=row["bytes"] or 0,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
    )


def totals(buckets: Iterable[Bucket]) -> list[QueueTotal]:
    """Sum up each queue over the whole time."""
    found: dict[tuple[str, int], list[Bucket]] = {}
    for each in buckets:
        found.setdefault((each.channel, each.queue), []).append(each)
    return [
        QueueTotal(
            channel=channel,
            queue=queue,
            messages=sum(each.messages for each in listed),
            bytes=sum(each.bytes for each in listed),
            buckets=len(listed),
            peak_rate=max(each.rate for each in listed),
        )
        for (channel, queue), listed in sorted(found.items())
    ]


def depths(client: Client) -> list[Depth]:
    """Request the current depth of every durable queue.

    :raises OperationFailed: if the broker refuses.
    """
    behind: dict[tuple[str, int], dict[str, int]] = {}
    for each in client.list_groups():
        behind.setdefault((each.channel, each.queue), {})[each.name] = each.behind or 0
    kept: list[OffsetsInformation] = client.offsets()
    found = []
    for state in kept:
        about = client.queue_information(state.channel, state.queue)
        found.append(
            Depth(
                channel=state.channel,
                queue=state.queue,
                waiting=about.messages + about.priority_messages,
                kept=state.count,
                groups=behind.get((state.channel, state.queue), {}),
            )
        )
    return found


def metrics_svg(buckets: list[Bucket]) -> str:
    """Plot rates over time, and latencies if they are known."""
    names = sorted({(each.channel, each.queue) for each in buckets})
    rates: dict[str, list[tuple[float, float]]] = {}
    late: dict[str, list[tuple[float, float]]] = {}
    times = sorted({each.at_s for each in buckets})
    for channel, queue in names:
        key = f"{channel}/{queue}"
        mine = {
            each.at_s: each for each in buckets if (each.channel, each.queue) == (channel, queue)
        }
        # An empty bucket is also a rate, 0.
        rates[key] = [(at, mine[at].rate if at in mine else 0.0) for at in times]
        known = [(at, mine[at].p95_ms) for at in times if at in mine]
        points = [(at, value) for at, value in known if value is not None]
        if points:
            late[key] = points
    panels = [Panel("messages a second", rates)]
    if late:
        panels.append(Panel("ms from producer to broker, 95 of 100 at most", late))
    return plot_svg("Messages received by the queues (UTC)", panels)
