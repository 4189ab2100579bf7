"""A session with the settings that suit the sources."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark.sql import SparkSession

from tmqp_spark.session import SETTINGS, register

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
