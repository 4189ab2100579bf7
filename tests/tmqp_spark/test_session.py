"""A session with the settings that suit the sources."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tmqp_spark.session import SETTINGS


def test_the_session_has_our_settings_and_works(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10
    for key, value in SETTINGS.items():
        assert spark.conf.get(key) == value, key
