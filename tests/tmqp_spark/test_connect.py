"""Spark Connect: a client without a JVM, and the session of the tests as its server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.project import ROOT
from tests.tmqp_spark.conftest import missing_for_connect
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLIENT_S = 120


@pytest.mark.long
@pytest.mark.skipif(
    bool(missing_for_connect()),
    reason=f"pip install 'tmqp[spark-connect]': without {', '.join(missing_for_connect())}",
)
def test_the_formats_work_over_connect(
    spark: SparkSession, connect_port: int, broker: Broker
) -> None:
    broker.push("connect", 1, ["one", "two", "three"])
    ran = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "tests.tmqp_spark.connect_job"),
            *(str(connect_port), broker.url),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=_CLIENT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["kind"].startswith("pyspark.sql.connect."), "a classic session shows nothing"
    assert said["found"] == ["one", "three", "two"]
    assert "tmqp" in said["registered"]
    numbers = sorted(str(number) for number in range(100))
    assert said["written"] == numbers
    assert "did you mean subscribe?" in said["mistake"]
