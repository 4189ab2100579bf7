"""A streaming query that writes exactly once, its driver killed at each point again and again.

Unlike the tests of :mod:`tests.tmqp_spark.test_sink`, where processes of Spark die and the session
lives on, here a whole driver with its JVM is killed without warning and started anew; so is the
broker.  In the end every row is in the queue once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.soak.share import seconds
from tests.tmqp_spark import killing
from tmqp_spark.testing import Broker

CHANNEL = "soak"
#: Rounds at each point, and fewer only where the time is over.
ROUNDS = 50
_DRIVER_S = 300


def drive(folder: Path, url: str) -> None:
    """The driver: writes all rows there are, and ends."""
    from tests.tmqp_spark.conftest import jvm_options, spark_environment  # noqa: PLC0415
    from tmqp_spark.session import session  # noqa: PLC0415

    spark_environment()
    spark = session(
        "soak",
        "local[2,3]",
        {
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": jvm_options(),
            "spark.local.dir": str(folder / "local"),
            "spark.log.level": "OFF",
        },
    )
    killing.register(spark)
    killing.start_query(spark, folder, url, CHANNEL).awaitTermination()
    spark.stop()


def _run(folder: Path, broker: Broker) -> int:
    """Drivers until one of them writes everything; how many did not."""
    for failures in range(10):
        if not broker.running:
            broker.kill()
            broker.start()
        (folder / "broker").write_text(str(broker.pid))
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(folder), broker.url],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a group of its own, with its JVM
        )
        (folder / "driver").write_text(str(-process.pid))
        try:
            status = process.wait(_DRIVER_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        if status == 0:
            return failures
    raise AssertionError("the query fails again and again")


@pytest.mark.parametrize("victim", ["driver", "broker", "itself"])
def test_every_row_is_there_once(tmp_path: Path, victim: str) -> None:
    folder = tmp_path / "query"
    folder.mkdir()
    until = time.monotonic() + seconds() / 3
    failures = rounds = 0
    with Broker(tmp_path / "broker") as broker:
        broker.create(CHANNEL, 1)
        while rounds < ROUNDS and (rounds == 0 or time.monotonic() < until):
            killing.add_rows(folder, rounds)
            rounds += 1
            killing.arm(
                folder, victim, *(killing.POINTS[1:] if victim == "broker" else killing.POINTS)
            )
            failures += _run(folder, broker)
            if not broker.running:
                broker.kill()
                broker.start()
            assert killing.armed(folder) == []
            found = killing.books(broker.url, CHANNEL)
            assert found == (rounds * killing.ROWS, 0, rounds * killing.ROWS - 1)
    print(
        f"{victim}: {rounds} micro-batches, killed at each point, {failures} drivers lost:", end=" "
    )
    print(f"{rounds * killing.ROWS} rows, lost 0, duplicated 0")


if __name__ == "__main__":
    drive(Path(sys.argv[1]), sys.argv[2])
