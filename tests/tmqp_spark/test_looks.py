"""The commands that look: metrics, dead letters, captures, corpora, tails and groups."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

import pytest

from tests.project import ROOT
from tests.tmqp_spark.commands import run, text_of
from tmqp_client import sync
from tmqp_spark.pipelines.metrics import Bucket, metrics_svg
from tmqp_spark.pipelines.plot import nice_step
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - what we have just made


def test_what_came_is_counted_by_time_and_queue(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    sent = str(round(time.time() * 1000) - 250)
    broker.push("met", 1, [b"x" * 10] * 300, headers={"Sent": sent})
    broker.push("met", 2, [b"yy"] * 50)
    plot = tmp_path / "met.svg"
    text = text_of(
        *("metrics", "met", "-a", broker.url, "--bucket", "1d", "--sent-header", "Sent"),
        *("--plot", str(plot), "--json"),
    )
    rows = [json.loads(line) for line in text.splitlines()]
    # A test at midnight sees two days.
    counts = Counter[int]()
    for row in rows:
        counts[row["queue"]] += row["messages"]
    assert counts == {1: 300, 2: 50}
    assert sum(row["bytes"] for row in rows if row["queue"] == 1) == 3_000
    assert all(240 < row["p50_ms"] < 60_000 for row in rows if row["queue"] == 1)
    assert all(row["p50_ms"] is None for row in rows if row["queue"] == 2)
    assert drawn(plot.read_text()).tag.endswith("svg")


def test_a_plot_has_a_line_for_each_queue_and_zero_where_nothing_came() -> None:
    buckets = [
        Bucket(
            at_s=at,
            seconds=60,
            channel="a<b",
            queue=queue,
            messages=60 * (queue + 1),
            bytes=1,
            p50_ms=1.0,
            p95_ms=2.0,
            p99_ms=None,
        )
        for at, queue in [(0.0, 1), (60.0, 1), (60.0, 2), (120.0, 2)]
    ]
    root = drawn(metrics_svg(buckets))
    lines = [
        each.get("points", "").split() for each in root.iter() if each.tag.endswith("polyline")
    ]
    assert [len(line) for line in lines] == [3, 3, 2, 2]
    bottom = max(float(point.split(",")[1]) for point in lines[0])
    assert float(lines[0][-1].split(",")[1]) == bottom
    assert float(lines[1][0].split(",")[1]) == bottom
    assert "a<b/1" in [each.text for each in root.iter() if each.tag.endswith("text")]
    assert drawn(metrics_svg([])).tag.endswith("svg")


@pytest.mark.parametrize(("most", "step"), [(0, 1), (1, 0.5), (7, 2), (100, 50), (4_000, 1_000)])
def test_steps_are_round(most: float, step: float) -> None:
    assert nice_step(most) == step


SICK: Final = """
[[channels]]
name = "dead"
queues = [{ id = 1, status = "pull", durable = true, retain_time_ms = 3600000 }]

[[channels]]
name = "sick"

[[channels.queues]]
id = 7
durable = true
retain_time_ms = 3600000
delivery_handler = "putback-end"
put_back_limit = 1
dead_letter = { channel = "dead", queue = 1 }
"""


@pytest.mark.timeout(400)
def test_dead_letters_are_told_apart_and_listed(spark: SparkSession, tmp_path: Path) -> None:
    listed = tmp_path / "dead.jsonl"
    with Broker(tmp_path / "broker", SICK) as broker:
        with sync.connect(broker.url, name="test", client_id="maker") as client:
            for number in range(6):
                kind = "odd" if number % 3 else "even"
                # This handler tells producers nothing.
                client.push("sick", 7, b"x", headers={"Kind": kind}, wait=False)
            with client.consume("sick", 7, acknowledge="manual") as consumer:
                for _ in range(12):
                    consumer.get(timeout_s=20).nack("no")
            # Somebody's own message there is no dead letter.
            client.push("dead", 1, b"alive")
        found = run(
            *("deadletter", "dead/1", "-a", broker.url, "--by", "Kind", "--pushed-to", "sick/7"),
            *("--list", str(listed), "--json"),
        )
    assert found["count"] == found["listed"] == 6
    assert {(each["pushed"], each["by"], each["count"]) for each in found["kinds"]} == {
        ("sick/7", "odd", 4),
        ("sick/7", "even", 2),
    }
    assert [each["count"] for each in found["lived_s"]] == [6]
    letters = [json.loads(line) for line in listed.read_text().splitlines()]
    assert {(each["pushed_channel"], each["pushed_queue"]) for each in letters} == {("sick", 7)}
    assert len({each["message_id"] for each in letters}) == 6


def test_captures_are_counted_timed_and_their_faults_named(spark: SparkSession) -> None:
    folder = str(ROOT / "tests" / "data" / "captures" / "real-0*.json")
    found = run("analyze", folder, "--json")
    kinds = {(each["dir"], each["type"]): each["frames"] for each in found["kinds"]}
    assert kinds["c2s", "PREAMBLE"] >= 7
    server = {each["type"]: each for each in found["answers"]}["SERVER"]
    assert server["asked"] >= server["answered"] > 5
    assert "FRAMES" in text_of("analyze", folder)


def test_a_corpus_shows_its_kinds_and_the_rules_it_breaks(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "good").write_bytes(b"TMQP/2.0" + bytes([0x12, 0x10, 0, 0, 0, 0, 0, 0]))
    (tmp_path / "torn").write_bytes(bytes([0x12, 0x10, 0]))
    (tmp_path / "lines.txt").write_text("1210000000000000\nzz\n")
    found = run("corpus", str(tmp_path), "--json")
    assert (found["files"], found["faulty"]) == (3, 2)
    assert {each["rule"] for each in found["faults"]} == {"torn", "line 2 is not hexadecimal"}


def test_a_tail_shows_what_there_is_and_what_comes(broker: Broker) -> None:
    broker.push("tail", 1, [b"one", b"two\x1b[2J", b"\xff"], headers={"a": "b"})
    lines = text_of("tail", "tail/1", "-a", broker.url, "-n", "2", "--no-follow").splitlines()
    assert [line.split("  ", 3)[1:] for line in lines] == [
        ["tail/1", "2", "two\\x1b[2J"],
        ["tail/1", "3", "\N{REPLACEMENT CHARACTER}"],
    ]
    rows = [
        json.loads(line)
        for line in text_of(
            *("tail", "tail", "-a", broker.url, "-o", "startingOffsets=earliest"),
            *("--count", "3", "--json"),
        ).splitlines()
    ]
    assert [row.get("value", row.get("base64")) for row in rows] == ["one", "two\x1b[2J", "/w=="]
    assert rows[0]["headers"] == [["a", "b"]]


def test_groups_are_listed_moved_and_forgotten(broker: Broker) -> None:
    broker.push("grp", 1, [b"%d" % number for number in range(10)])
    with sync.connect(broker.url, name="test") as client:
        client.open_cursor("grp", 1, "readers", start="latest")
    assert _group(broker) == {"sequence": 10, "behind": 0}
    assert run("groups", "reset", "readers", "--to", "grp/1=4", "-a", broker.url)["queues"] == {
        "grp/1": 3
    }
    assert _group(broker) == {"sequence": 3, "behind": 7}
    run("groups", "reset", "readers", "--to", "earliest", "--channel", "grp", "-a", broker.url)
    assert _group(broker) == {"sequence": 0, "behind": 10}
    assert "readers  grp/1" in text_of("groups", "list", "--channel", "grp", "-a", broker.url)
    run("groups", "delete", "readers", "-a", broker.url)
    assert text_of("groups", "list", "readers", "--json", "-a", broker.url) == ""
    said = run("groups", "reset", "x", "--to", "sometime", "-a", broker.url, code=2)
    assert "--to is earliest, latest" in said
    assert "404" in run("groups", "delete", "readers", "-a", broker.url, code=1)


def _group(broker: Broker) -> dict[str, int]:
    found = json.loads(
        text_of("groups", "list", "readers", "--channel", "grp", "--json", "-a", broker.url)
    )
    return {"sequence": found["sequence"], "behind": found["behind"]}
