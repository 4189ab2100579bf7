"""The tail of queues: prints messages as they arrive, without Spark."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from tmqp_spark.arrow import BatchBuilder
from tmqp_spark.catalog import Catalog, QueueState, Subscription
from tmqp_spark.following import Following, check_stream
from tmqp_spark.offsets import Place, Places, read_checkpoint, write_checkpoint
from tmqp_spark.options import ConnectionOptions, SourceOptions
from tmqp_spark.pipelines.stopping import Stop
from tmqp_spark.ranges import QueueRange, read_range
from tmqp_spark.schema import project
from tmqp_spark.transport import BrokerLink, first_contact

__all__ = ["tail", "to_json", "to_text"]

_COLUMNS: Final = (
    ("channel", "string", False),
    ("queue", "int", False),
    ("seq", "bigint", False),
    ("timestamp", "timestamp", False),
    ("message_id", "string", True),
    ("source", "string", True),
    ("headers", "array<struct<key:string,value:string>>", True),
    ("value", "binary", True),
)


def tail(
    connection: ConnectionOptions,
    source: SourceOptions,
    stop: Stop,
    *,
    last: int = 0,
    follow: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield the messages of queues, as values by column name, in order within each queue.

    :param last: begin with about this number of existing messages of each queue (sequences have
        gaps).
    :param follow: continue with new messages, until a stop is requested.
    :raises SparkError: as the source does.
    """
    check_stream(source)
    link = first_contact(connection)
    reading = BrokerLink(connection)
    try:
        following = Following(link, source)
        if not follow:
            following.prepare_available_now()
        start = following.initial()
        if last:
            start = _back(start, last, Catalog(link, Subscription(source)).look())
        while not stop.wanted:
            end = following.latest(start, False)
            if end is start:
                if not follow:
                    return
                continue
            for part in following.plan(start, end):
                yield from _rows(reading, part, source, connection)
            start = end
    finally:
        link.close()
        reading.close()


def _back(start: dict[str, Any], last: int, states: dict[str, QueueState]) -> dict[str, Any]:
    """Move places back by a number of sequences, but not before the earliest kept message."""
    places: Places = {}
    for key, place in read_checkpoint(start).items():
        earliest = states[key].earliest if key in states else place.next
        places[key] = Place(place.incarnation, min(place.next, max(earliest, place.next - last)))
    return write_checkpoint(places)


def _rows(
    link: BrokerLink, part: QueueRange, source: SourceOptions, connection: ConnectionOptions
) -> Iterator[dict[str, Any]]:
    what = f"{connection.url} {part.channel}/{part.queue}"
    builder = BatchBuilder(project(_COLUMNS), part.channel, part.queue, part.incarnation, what)
    for portion in read_range(link, part, source):
        if len(portion):
            yield from builder.build(portion).to_pylist()


def to_text(row: dict[str, Any]) -> str:
    """Format a message as a line for people, with control characters escaped."""
    value = row["value"] or b""
    text = value.decode("utf-8", "replace")
    shown = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
    when = row["timestamp"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{when}  {row['channel']}/{row['queue']}  {row['seq']}  {shown}"


def to_json(row: dict[str, Any]) -> str:
    """Format a message as a JSON object; a payload that is not UTF-8 is in ``base64``."""
    data = {**row, "timestamp": row["timestamp"].isoformat()}
    headers = row["headers"]
    data["headers"] = headers and [[pair["key"], pair["value"]] for pair in headers]
    value = data.pop("value") or b""
    try:
        data["value"] = value.decode("utf-8")
    except UnicodeDecodeError:
        data["base64"] = base64.b64encode(value).decode("ascii")
    return json.dumps(data, ensure_ascii=False)
