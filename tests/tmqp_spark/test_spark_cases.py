"""The benchmark: its arithmetic, its rivals, which do the same work, and a run of the command."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tests.tmqp_spark.commands import kept, run, text_of
from tmqp_bench.spark_cases import CASES, processes
from tmqp_bench.spark_cases.aims import MISSED, NOT_MEASURED, REACHED, Aim, Figure, Record, ratios
from tmqp_bench.spark_cases.command import spark as command
from tmqp_bench.spark_cases.nearer import value_bytes
from tmqp_bench.spark_cases.processes import Spent, Usage, tree
from tmqp_spark.options import ConnectionOptions, read_options
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# --- Arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "at_most", "verdict", "got"),
    [
        ([7.9, 8.0, 100.0], False, REACHED, "8 x"),
        ([7.9, 7.99, 100.0], False, MISSED, "7.99 x"),
        ([8.0, 9.0, 1.0], True, REACHED, "8 x"),
        ([8.5], True, MISSED, "8.50 x"),
        ([9.0, None], False, NOT_MEASURED, NOT_MEASURED),
        ([], False, NOT_MEASURED, NOT_MEASURED),
    ],
)
def test_the_median_is_compared_with_the_bound(
    values: list[float | None], at_most: bool, verdict: str, got: str
) -> None:
    aim = Aim("rows", "speed", "x", 8, values, at_most=at_most)
    assert (aim.verdict, aim.got) == (verdict, got)
    assert aim.wanted == ("<= 8 x" if at_most else ">= 8 x")
    assert aim.to_json()["verdict"] == verdict


def test_ratios_are_taken_round_by_round() -> None:
    slow = [Spent(8.0, 4.0, 2.0), Spent(30.0, 5.0, 5.0)]
    fast = [Spent(1.0, 1.0, 0.5), Spent(3.0, 2.0, 2.0)]
    assert ratios(slow, fast) == [8.0, 10.0]
    assert ratios(slow, fast, "spark_s") == [4.0, 2.5]
    with_brokers = [Spent(1.0, 1.0, 0.5, 0.5), Spent(1.0, 3.0, 2.0, 1.0)]
    assert ratios(with_brokers, with_brokers[:1] * 2, "all_s") == [1.0, 3.0]
    assert ratios(slow, with_brokers, "all_s") == [None, None]
    unknown = [Spent(1.0), Spent(1.0)]
    assert ratios(slow, unknown, "spark_s") == [None, None]
    assert ratios(slow, unknown) == [8.0, 30.0]


def test_a_figure_is_by_the_message() -> None:
    rounds = [Spent(2.0, 0.1, 0.2, 0.3), Spent(4.0, 0.3, 0.2, 0.1), Spent(3.0, 0.2, 0.2, 0.2)]
    figure = Figure("tmqp", 1_000, 100_000, rounds).to_json()
    assert figure["per_s"] == 333
    assert figure["mb_per_s"] == 0.0
    assert (figure["jvm_ns"], figure["python_ns"], figure["broker_ns"]) == (200_000,) * 3
    assert figure["spread"] == 2.0
    assert Figure("x", 1, 0, [Spent(1.0)]).to_json()["jvm_ns"] is None


def test_processor_time_of_children_is_found_and_of_others_not() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"
    before = tree(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = tree(os.getpid())
        assert alive[child.pid] >= 0.25
        assert tree(child.pid).keys() == {child.pid}
        own = Usage(0.0, os.getpid(), child.pid)
        child.communicate(b"\n")
    # It was waited for: what it used is its parent's now.
    assert tree(os.getpid())[os.getpid()] - before[os.getpid()] >= 0.25
    lost = Usage(1.0, os.getpid(), 0).since(own)
    assert lost.lost
    assert not Usage(1.0, 0, 0).since(Usage(0.0, 0, 0)).lost


def test_without_proc_processor_time_is_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    spent = Usage(time.perf_counter(), os.getpid(), 1).since(Usage(0.0, os.getpid(), 1))
    assert (spent.jvm_s, spent.python_s, spent.broker_s, spent.spark_s) == (None,) * 4
    record = Record("rows", "title")
    record.at_most("processor time", 1.0, ratios([spent], [spent], "spark_s"))
    assert record.aims[0].verdict == NOT_MEASURED


# --- Bytes ---------------------------------------------------------------------------------------


def test_values_that_the_broker_cuts_out_take_about_half_of_the_bytes(broker: Broker) -> None:
    broker.push("bytes", 1, [b"x" * 100] * 1_000)
    connection = read_options(ConnectionOptions, {"url": broker.url})
    whole, pruned = value_bytes(connection, "bytes/1")
    # On a busy machine each message is written by itself; both then have the heads of all blocks.
    assert 100_000 < pruned < whole * 0.6


# --- Rivals ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_rivals_read_and_write_the_same(spark: SparkSession, broker: Broker) -> None:
    from tmqp_bench.spark_cases.rivals import (  # noqa: PLC0415 - with Spark only
        PLAIN_COLUMNS,
        RowSink,
        RowSource,
        TupleSource,
    )

    for rival in (TupleSource, RowSource, RowSink):
        spark.dataSource.register(rival)
    broker.push("rivals", 1, [b"%05d" % number for number in range(3_000)])

    def read(form: str) -> list[Any]:
        source = spark.read.format(form).options(url=broker.url, subscribe="rivals/1")
        return [tuple(row) for row in source.schema(PLAIN_COLUMNS).load().collect()]

    ours = read("tmqp")
    assert len(ours) == 3_000
    assert sorted(read("tmqp_bench_tuples")) == sorted(ours) == sorted(read("tmqp_bench_rows"))
    broker.create("rivals", 2)
    rows = spark.range(500).selectExpr("cast(lpad(id, 5, '0') as binary) as value")
    rows.write.format("tmqp_bench_row_sink").mode("append").options(
        url=broker.url, channel="rivals", queue=2
    ).save()
    assert sorted(bytes(each.payload) for each in kept(broker, "rivals", 2)) == [
        b"%05d" % number for number in range(500)
    ]


# --- The command ----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_run_prints_figures_aims_and_verdicts(spark: SparkSession, tmp_path: Path) -> None:
    arguments = ["--messages", "1000", "--rounds", "1", "--folder", str(tmp_path)]
    found = run(
        *arguments,
        "--only",
        "decode",
        "--only",
        "backlog",
        "--only",
        "once",
        "--json",
        command=command,
    )
    assert [case["case"] for case in found["cases"]] == ["decode", "backlog", "once"]
    assert found["messages"] == 1_000
    aims = [aim for case in found["cases"] for aim in case["aims"]]
    assert {aim["verdict"] for aim in aims} <= {REACHED, MISSED}
    backlog = next(aim for aim in aims if aim["case"] == "backlog")
    assert (backlog["measured"], backlog["verdict"]) == (0, REACHED)
    figures = {each["variant"]: each for each in found["cases"][2]["figures"]}
    assert figures.keys() == {"exactly once", "at least once"}
    assert all(each["count"] == 250 and each["per_s"] > 0 for each in figures.values())
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_tables_are_for_people(spark: SparkSession) -> None:
    text = text_of("--messages", "1000", "--rounds", "1", "--only", "large", command=command)
    assert "batch read of 1 KiB (large)" in text
    assert "bytes only, no Spark" in text
    assert "payload/s of 1 KiB each" in text
    assert "VERDICT" in text
    assert "medians of 1 rounds" in text


def test_an_unknown_case_is_named_with_those_there_are() -> None:
    said = run("--only", "speed", code=2, command=command)
    assert "there is no case 'speed'" in said
    assert all(name in said for name in CASES)
    assert "1000<=x" in run("--messages", "0", code=2, command=command)


def test_help_says_what_each_case_is() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    assert all(f"  {name:<8} " in text for name in CASES)
