"""The comparison with Spark's Kafka connector: what it says, and a run of our own side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.tmqp_spark.conftest import spark_environment
from tmqp_bench import __main__ as command
from tmqp_bench.spark import jars
from tmqp_bench.spark.report import as_json, as_text, verdicts
from tmqp_bench.spark.suite import Figures, SparkPlan, SparkResults


def results(ours: float, theirs: float | None) -> SparkResults:
    """As if a batch had been read so fast by either."""
    plan = SparkPlan({100: 1_000}, ("read-values",), 3, "compiled", peers=True, jars=Path("x"))
    found = SparkResults(plan)
    for who, rate in (("tmqp", ours), ("Kafka", theirs)):
        if rate is not None:
            figures = Figures([rate, rate * 2, rate / 2], [500.0] * 3, [100.0] * 3)
            found.figures["read-values", 100, who] = figures
    return found


def test_a_report_has_both_and_a_verdict() -> None:
    text = as_text(results(3_000_000, 2_000_000))
    assert "batch read, values: tmqp   3,000,000" in text
    assert "1.50 x" in text
    assert "reached" in text
    (missed,) = verdicts(results(1_000_000, 2_000_000))
    assert (missed.reached, missed.passed) == ("0.50 x", False)
    assert as_json(results(1, 2))["aims"][0]["passed"] is False


def test_a_peer_that_is_not_there_is_named() -> None:
    found = results(3_000_000, None)
    found.missing["Kafka"] = "there is no mvn on the path: apt-get install maven"
    text = as_text(found)
    assert "not judged" in text
    assert "Kafka: there is no mvn on the path: apt-get install maven" in text


@pytest.mark.parametrize(("present", "says"), [([], "no java"), (["java"], "no mvn")])
def test_without_java_or_maven_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: list[str], says: str
) -> None:
    for name in present:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(jars.JarsMissingError, match=says):
        jars.connector_jars(tmp_path / "jars")


def test_what_maven_cannot_fetch_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("java", "exit 0"), ("mvn", "echo '[ERROR] no route'; exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(jars.JarsMissingError, match=r"mvn could not fetch .*: \[ERROR\] no route"):
        jars.broker_jars(tmp_path / "jars")
    assert not (tmp_path / "jars" / f"kafka-{jars.BROKER_VERSION}" / "complete").exists()


def test_jars_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maven is asked for the connector without what it depends on, and never again."""
    script = 'for a; do case $a in -DoutputDirectory=*) touch "${a#*=}/a.jar";; esac; done'
    for name in ("java", "mvn"):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (found,) = jars.connector_jars(tmp_path / "jars")
    assert found.name == "a.jar"
    project = (found.parent / "pom.xml").read_text()
    assert project.count("<exclusion>") == project.count("<dependency>") == 4
    (tmp_path / "mvn").write_text("#!/bin/sh\nexit 1\n")
    assert jars.connector_jars(tmp_path / "jars") == [found]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rows", "5"], "rows are 1000..10000000, got 5"),
        (["--payload", "1"], "a payload is 16..1000000 bytes, got 1"),
        (["--rounds", "0"], "rounds is 1..100, got 0"),
        (["--workload", "wirte"], "invalid choice: 'wirte'"),
    ],
)
def test_what_was_typed_wrongly_is_said(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(["kafka", *arguments])
    assert says in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.cold
@pytest.mark.timeout(240)
def test_our_side_is_measured() -> None:
    spark_environment()
    program = [sys.executable, "-m", "tmqp_bench", "kafka", "--alone", "--json"]
    program += ["--rows", "1000", "--rounds", "1", "--payload", "100", "--build", "interpreted"]
    ran = subprocess.run(
        [*program, "--workload", "stream-read", "--workload", "write"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'fuzz' / 'bench'}"},
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    found = json.loads(ran.stdout)
    by_name = {(each["workload"], each["contender"]): each for each in found["figures"]}
    assert set(by_name) == {
        ("stream-read", "tmqp"),
        ("write", "tmqp"),
        ("write", "tmqp, at least once"),
    }
    assert all(each["rows_per_s"][0] > 0 for each in by_name.values())
    assert all(aim["passed"] is None for aim in found["aims"]), "there is nobody to compare with"
