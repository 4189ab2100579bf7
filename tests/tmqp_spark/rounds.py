"""Drivers that are killed: processes with a Spark each, and the rounds in which they die.

Theory of operation.  A *round* is a file of rows, which becomes a micro-batch, and a victim that is
struck once at each point while the micro-batch is tried: the driver with its JVM, the broker, the
executor's JVM on a cluster, or that very process of Spark's.  When all have been struck every row
must be in the queue once.  A driver lives as long as nobody kills it, and its query is started
again when it fails; where drivers are killed another one stands by, with its session made, for
that takes longer than all the rest.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Self

from tests.project import ROOT
from tests.tmqp_spark import killing
from tmqp_client.errors import ConnectFailed, ConnectionLost
from tmqp_spark.testing import Broker

__all__ = ["POINTS", "Drivers", "run_rounds"]

CHANNEL: Final = "rounds"
POINTS: Final = {
    "driver": killing.POINTS,
    "broker": killing.POINTS[1:],
    "executor": ("rows", "staged"),
    "itself": killing.POINTS,
}
#: What a round may take.
_PATIENCE_S: Final = 400
_LOOK_S: Final = 0.05

# --- The driver's process -------------------------------------------------------------------------


def _end_with(parent: int) -> None:
    """Take this process and its JVM along when the test is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def drive(folder: Path, url: str, master: str) -> None:
    """The driver: makes a session, waits for its turn, and runs the query until it is killed."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    from pyspark.errors import PySparkException  # noqa: PLC0415 - not in the test's process

    from tests.tmqp_spark.conftest import jvm_options, spark_environment  # noqa: PLC0415
    from tmqp_spark.session import session  # noqa: PLC0415

    spark_environment()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": jvm_options(),
        "spark.executor.extraJavaOptions": jvm_options(),
        "spark.executor.memory": "512m",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "OFF",
    }
    spark = session("soak", master, settings)
    killing.register(spark)
    turn = folder / f"turn {os.getpid()}"
    while not turn.exists():
        time.sleep(_LOOK_S)
    while True:
        # A query that fails is started again, as people do; each failure is a line.
        try:
            killing.start_query(spark, folder, url, CHANNEL, stays=True).awaitTermination()
        except PySparkException:
            with (folder / "failures").open("a") as failures:
                failures.write("failed\n")
            time.sleep(_LOOK_S)


class Drivers:
    """The driver that has its turn, and the one that stands by if drivers are to die."""

    def __init__(self, folder: Path, url: str, master: str, *, mortal: bool) -> None:
        self.started = 0
        self._folder = folder
        self._arguments = [str(folder), url, master]
        self._mortal = mortal
        self._first = self._start()
        self._next = self._start() if mortal else None
        self._give_turn()

    def _start(self) -> subprocess.Popen[bytes]:
        self.started += 1
        return subprocess.Popen(
            [sys.executable, "-m", __name__, *self._arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a group of its own, with its JVM
        )

    def _give_turn(self) -> None:
        (self._folder / "driver").write_text(str(-self._first.pid))
        (self._folder / f"turn {self._first.pid}").touch()

    def look(self) -> None:
        """Have another driver go on where one was killed."""
        if self._first.poll() is None:
            return
        assert self._mortal, f"the driver ended, with status {self._first.returncode}"
        self._end(self._first)
        self._first = self._next or self._start()
        self._give_turn()
        self._next = self._start()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # our own group, whoever is left in it
        process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._first, self._next):
            if process is not None:
                self._end(process)


# --- Rounds ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _master(victim: str, folder: Path) -> Iterator[str]:
    """Where the tasks run: on a cluster if executors are to be killed."""
    if victim != "executor":
        yield "local[2,3]"
        return
    from tests.tmqp_spark.conftest import spark_environment  # noqa: PLC0415
    from tests.tmqp_spark.standalone import Cluster  # noqa: PLC0415

    spark_environment()
    logs = folder / "cluster"
    logs.mkdir()
    with Cluster(logs, {"PYTHONPATH": str(ROOT / "src"), "SPARK_LOCAL_IP": ""}) as cluster:
        yield cluster.url


def _round(folder: Path, broker: Broker, drivers: Drivers, number: int, victim: str) -> None:
    """Kill at all points of one micro-batch; in the end its rows are there once."""
    killing.arm(folder, victim, *POINTS[victim])
    killing.add_rows(folder, number)
    rows = (number + 1) * killing.ROWS
    deadline = time.monotonic() + _PATIENCE_S
    found = (0, 0, -1)
    while killing.armed(folder) or found[0] < rows:
        assert time.monotonic() < deadline, f"{killing.armed(folder)} are armed, {found} are there"
        time.sleep(_LOOK_S)
        drivers.look()
        if not broker.running:
            broker.kill()
            broker.start()
            (folder / "broker").write_text(str(broker.pid))
        if not killing.armed(folder):
            # Who kills says so first: the broker may be killed this very moment.
            with contextlib.suppress(ConnectFailed, ConnectionLost):
                found = killing.books(broker.url, CHANNEL)
            assert not found[1], f"{found[1]} rows are there twice"
    assert found == (rows, 0, rows - 1)


def run_rounds(folder: Path, victim: str, more: Callable[[int], bool]) -> str:
    """Do rounds with a victim, as long as ``more`` says of the number done; what came of it."""
    from tests.tmqp_spark.conftest import share_classes, spark_environment  # noqa: PLC0415

    query = folder / "query"
    (query / "rows").mkdir(parents=True)
    spark_environment()
    share_classes()
    began = time.monotonic()
    rounds = 0
    with Broker(folder / "broker") as broker, _master(victim, folder) as master:
        broker.create(CHANNEL, 1)
        (query / "broker").write_text(str(broker.pid))
        with Drivers(query, broker.url, master, mortal=victim == "driver") as drivers:
            while more(rounds):
                _round(query, broker, drivers, rounds, victim)
                rounds += 1
    failed = query / "failures"
    failures = len(failed.read_text().splitlines()) if failed.exists() else 0
    return (
        f"{victim}: {rounds} micro-batches, {rounds * len(POINTS[victim])} kills"
        f" ({', '.join(POINTS[victim])}), {drivers.started} drivers, {failures} queries started"
        f" again: {rounds * killing.ROWS} rows, lost 0, duplicated 0;"
        f" {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    drive(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
