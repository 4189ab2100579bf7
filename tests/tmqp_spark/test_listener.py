"""The progress of queries, as lines and for Prometheus."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tmqp_spark.listener import TmqpProgressListener, exposition, progress_line

PROGRESS: dict[str, Any] = {
    "id": "q1",
    "name": "orders",
    "timestamp": "2026-11-21T10:00:00.000Z",
    "batchId": 7,
    "batchDuration": 250,
    "numInputRows": 1_000,
    "inputRowsPerSecond": float("nan"),
    "processedRowsPerSecond": 4_000.0,
    "durationMs": {"addBatch": 200},
    "sources": [
        {"latestOffset": '{"behind":{"bytes":900,"messages":9},"q":{},"v":1}'},
        {"latestOffset": {"behind": {"bytes": 100, "messages": 1}}},
        {"latestOffset": "no JSON"},
        {"latestOffset": None},
    ],
}


def _event(**more: Any) -> Any:
    given = {"id": "q1", "name": "orders", "exception": None, **more}
    return SimpleNamespace(**given, progress=SimpleNamespace(json=json.dumps(PROGRESS)))


def test_a_line_says_what_a_batch_came_to_and_how_far_behind_its_sources_are() -> None:
    line = progress_line(PROGRESS)
    assert (line["batch"], line["rows"], line["batch_s"]) == (7, 1_000, 0.25)
    assert (line["behind"], line["behind_bytes"]) == (10, 1_000)
    assert line["input_rows_per_second"] == 0.0
    assert "behind" not in progress_line({**PROGRESS, "sources": []})


def test_lines_and_metrics_are_written(tmp_path: Path) -> None:
    lines, metrics = tmp_path / "lines", tmp_path / "spark.prom"
    listener = TmqpProgressListener(lines, metrics)
    listener.onQueryStarted(_event())
    listener.onQueryProgress(_event())
    listener.onQueryProgress(_event())
    listener.onQueryIdle(_event())
    listener.onQueryTerminated(_event(exception="it broke\nat line 1"))
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [each["event"] for each in told] == ["started", "progress", "progress", "ended"]
    assert told[-1]["error"] == "it broke"
    text = metrics.read_text().splitlines()
    labels = '{query="orders",id="q1"}'
    for line in (
        f"tmqp_spark_running{labels} 0",
        f"tmqp_spark_batches_total{labels} 2",
        f"tmqp_spark_rows_total{labels} 2000",
        f"tmqp_spark_behind_messages{labels} 10",
        "# TYPE tmqp_spark_rows_total counter",
    ):
        assert line in text
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []


def test_what_cannot_be_written_does_not_disturb(tmp_path: Path, caplog: Any) -> None:
    told: list[str] = []
    listener = TmqpProgressListener(write=told.append, metrics=tmp_path / "none" / "spark.prom")
    listener.onQueryProgress(_event())
    assert len(told) == 1
    assert "progress cannot be written" in caplog.text


def test_names_are_escaped() -> None:
    text = exposition({'a"b': {"name": "x\\y\nz", "running": 1}})
    assert 'query="x\\\\y\\nz",id="a\\"b"' in text
    assert "batch_id" not in text
