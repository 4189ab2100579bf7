"""The oldest PySpark that is supported; the newest one is installed, and runs all other tests."""

from __future__ import annotations

from pathlib import Path

from tests.interop.spark.oldest_job import COUNT
from tests.interop.spark.packages import MARKS, ran
from tests.tmqp_spark.commands import kept
from tmqp_client import sync
from tmqp_spark.testing import Broker

pytestmark = MARKS


def test_the_oldest_pyspark_writes_reads_and_settles(broker: Broker, tmp_path: Path) -> None:
    """Sources and sinks of both kinds, filters, and a group that has read everything."""
    said = ran("oldest_job", broker.url, str(tmp_path), folder=tmp_path)
    assert said["pyspark"] == "4.2.0"
    assert said["filtered"] == [[1, 3], [1, 4]]
    copied = sorted(int(message.payload) for message in kept(broker, "copies", 1))
    assert copied == list(range(COUNT))
    with sync.connect(broker.url) as client:
        read = [cursor.sequence for queue in (1, 2) for cursor in client.cursors("numbers", queue)]
    assert read == [COUNT // 2, COUNT // 2]
