"""Monitor queries: the progress of each micro-batch, for logs and for Prometheus.

::

    spark.streams.addListener(TmqpProgressListener(metrics="/var/lib/node_exporter/spark.prom"))

Each micro-batch adds one line of JSON to a file or to standard error; the latest numbers of every
query are in a file in Prometheus' text format, which is replaced as a whole, for the textfile
collector of the node exporter or any web server.  For sources of the format ``tmqp``, the lag comes
from the broker.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ["TmqpProgressListener", "exposition", "progress_line"]

_LOG: Final = logging.getLogger("tmqp_spark")
#: The name, type and help of each metric, and the field of a line that it shows.
_METRICS: Final = (
    ("running", "gauge", "1 while the query runs, 0 after its end.", "running"),
    ("batch_id", "gauge", "Number of the last micro-batch.", "batch"),
    ("batches_total", "counter", "Micro-batches since the listener began.", "batches"),
    ("rows_total", "counter", "Rows read since the listener began.", "rows_total"),
    ("input_rows_per_second", "gauge", "Rows that arrived, a second.", "input_rows_per_second"),
    (
        "processed_rows_per_second",
        "gauge",
        "Processed rows a second.",
        "processed_rows_per_second",
    ),
    ("batch_seconds", "gauge", "How long the last micro-batch took.", "batch_s"),
    ("behind_messages", "gauge", "Messages kept by the broker and not yet read.", "behind"),
    ("behind_bytes", "gauge", "Their bytes.", "behind_bytes"),
)


class TmqpProgressListener(StreamingQueryListener):
    """Records the progress of the queries of a session.

    :param lines: the file to which a line of JSON is appended for each micro-batch; standard error
        if None.
    :param metrics: the file in Prometheus' format; none if None.
    :param write: a function that gets each line, instead of ``lines``.

    An error in writing is logged and does not affect the query.
    """

    def __init__(
        self,
        lines: str | Path | None = None,
        metrics: str | Path | None = None,
        write: Callable[[str], None] | None = None,
    ) -> None:
        self._lines = None if lines is None else Path(lines)
        self._metrics = None if metrics is None else Path(metrics)
        self._write = write
        self._lock = threading.Lock()
        self._queries: dict[str, dict[str, Any]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Note that a query runs."""
        with self._lock:
            found = self._query(str(event.id))
            found["name"] = event.name or str(event.id)
            found["running"] = 1
        self._tell({"event": "started", "query": str(event.id), "name": event.name})

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Record the results of a micro-batch."""
        self._note(progress_line(json.loads(event.progress.json)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing, because there is no new data."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Note that a query ended, and why."""
        with self._lock:
            self._query(str(event.id))["running"] = 0
        line = {"event": "ended", "query": str(event.id)}
        if event.exception:
            line["error"] = str(event.exception).strip().splitlines()[0]
        self._tell(line)

    def _note(self, line: dict[str, Any]) -> None:
        with self._lock:
            found = self._query(line["query"])
            found.update(line)
            found["name"] = line["name"] or line["query"]
            found["batches"] = found.get("batches", 0) + 1
            found["rows_total"] = found.get("rows_total", 0) + line["rows"]
        self._tell(line)

    def _query(self, query: str) -> dict[str, Any]:
        return self._queries.setdefault(query, {"name": query, "running": 1})

    def _tell(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":"))
        with self._lock:
            try:
                if self._write is not None:
                    self._write(text)
                elif self._lines is None:
                    sys.stderr.write(f"{text}\n")
                    sys.stderr.flush()
                else:
                    with self._lines.open("a", encoding="utf-8") as file:
                        file.write(f"{text}\n")
                if self._metrics is not None:
                    fresh = self._metrics.with_name(f".{self._metrics.name}.new")
                    fresh.write_text(exposition(self._queries), encoding="utf-8")
                    fresh.replace(self._metrics)
            except OSError as error:
                _LOG.warning("progress cannot be written: %s", error)


def progress_line(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line about a micro-batch, from Spark's report.

    ``behind`` and ``behind_bytes`` are present only if a source reports them.
    """
    line: dict[str, Any] = {
        "event": "progress",
        "at": progress.get("timestamp"),
        "query": str(progress.get("id")),
        "name": progress.get("name"),
        "batch": progress.get("batchId"),
        "rows": progress.get("numInputRows") or 0,
        "input_rows_per_second": _rate(progress.get("inputRowsPerSecond")),
        "processed_rows_per_second": _rate(progress.get("processedRowsPerSecond")),
        "batch_s": (progress.get("batchDuration") or 0) / 1000,
        "durations_ms": dict(progress.get("durationMs") or {}),
    }
    for source in progress.get("sources") or ():
        behind = _behind(source.get("latestOffset"))
        if behind is not None:
            line["behind"] = line.get("behind", 0) + behind[0]
            line["behind_bytes"] = line.get("behind_bytes", 0) + behind[1]
    return line


def _rate(value: Any) -> float:
    # Spark reports no number, or NaN, if nothing was measured.
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _behind(offset: Any) -> tuple[int, int] | None:
    """Return the lag in messages and bytes, from the latest offset of a ``tmqp`` source."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    told = offset.get("behind") if isinstance(offset, dict) else None
    if not isinstance(told, dict):
        return None
    return int(told.get("messages") or 0), int(told.get("bytes") or 0)


def exposition(queries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the latest numbers of queries in Prometheus' text format.

    :param queries: by id: the last result of :func:`progress_line`, ``name``, ``running``,
        ``batches`` and ``rows_total``.
    """
    lines: list[str] = []
    for name, kind, about, key in _METRICS:
        rows = []
        for query, numbers in sorted(queries.items()):
            value = numbers.get(key)
            if value is not None:
                labels = f'query="{_escaped(str(numbers["name"]))}",id="{_escaped(query)}"'
                rows.append(f"tmqp_spark_{name}{{{labels}}} {value}")
        if rows:
            lines += [f"# HELP tmqp_spark_{name} {about}", f"# TYPE tmqp_spark_{name} {kind}"]
            lines += rows
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
