"""A session with the settings that suit the sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tmqp_spark.session import SETTINGS, _runs_here, register

FORMATS = ["tmqp", "tmqp_events", "tmqp_capture"]


def _recording(java: Any) -> tuple[Any, list[str]]:
    """A session that notes the formats it is given; ``java`` is its part in the JVM."""
    given: list[str] = []
    taking = SimpleNamespace(register=lambda source: given.append(source.name()))
    return SimpleNamespace(_jsparkSession=java, dataSource=taking), given


def test_the_session_has_our_settings_and_works(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10
    for key, value in SETTINGS.items():
        assert spark.conf.get(key) == value, key


def test_every_start_of_a_session_warned_three_times(spark: SparkSession) -> None:
    """Spark warns of each format that is registered although Spark has found it."""
    session, given = _recording(spark._jsparkSession)
    assert register(session) == FORMATS
    assert given == []


def test_formats_that_spark_does_not_find_are_registered() -> None:
    manager = SimpleNamespace(dataSourceExists=lambda name: name == "tmqp_events")
    state = SimpleNamespace(dataSourceManager=lambda: manager)
    session, given = _recording(SimpleNamespace(sessionState=lambda: state))
    assert register(session) == FORMATS
    assert given == ["tmqp", "tmqp_capture"]
    connect, given = _recording(None)
    assert register(connect) == FORMATS
    assert given == FORMATS


_WORKER = """
import sys
import tmqp_spark
spark = tmqp_spark.session(master="local[1]", settings={"spark.ui.enabled": "false"})
def python(_):
    import numpy
    return sys.executable
print("worker", *spark.sparkContext.parallelize([1], 1).map(python).collect())
spark.stop()
"""


@pytest.mark.long
def test_workers_were_of_another_python_where_the_environment_was_not_active(
    tmp_path: Path,
) -> None:
    """Spark took the python3 of the PATH, and said "No module named numpy"."""
    poor = tmp_path / "python3"
    poor.write_text("#!/bin/sh\necho 'No module named numpy' >&2\nexit 1\n")
    poor.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV"):
        environment.pop(name, None)
    ended = subprocess.run(
        [sys.executable, "-c", _WORKER],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert f"worker {sys.executable}" in ended.stdout, ended.stderr[-2000:]


def test_workers_have_this_python_only_where_they_run_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("MASTER", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("SPARK_HOME", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    assert _runs_here("local[2]", {})
    assert _runs_here(None, {})
    assert _runs_here(None, {"spark.master": "local"})
    assert not _runs_here("spark://host:7077", {})
    assert not _runs_here(None, {"spark.master": "yarn"})
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert not _runs_here(None, {})
    assert _runs_here("local", {})
