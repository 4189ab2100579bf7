"""A job on a cluster of two executors, one of which is killed while it reads: run by a test.

Arguments: the broker's address, a folder for Spark's own files.  It prints what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from tests.tmqp_spark.conftest import jvm_options, spark_environment
from tmqp_spark.session import session

PATIENCE_S: Final = 120


def executors() -> list[int]:
    """The processes of our executors (of this very cluster, not of another one)."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    mine = f"spark.driver.port={PORT}"
    return [
        int(line.split()[0])
        for line in listed.stdout.splitlines()
        if "CoarseGrainedExecutorBackend" in line and mine in line
    ]


PORT: Final = int(os.environ.get("TMQP_TEST_PORT", "0"))


def kill_one(spark: Any, killed: list[int]) -> None:
    """Kill an executor as soon as some tasks are done and others are being done."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            found = executors()
            if info and info.numCompletedTasks >= 2 and info.numActiveTasks and found:
                os.kill(found[0], signal.SIGKILL)
                killed.append(info.numCompletedTasks)
                return
        time.sleep(0.01)


def main(url: str, folder: Path) -> None:
    spark_environment()
    os.environ["SPARK_WORKER_DIR"] = str(folder / "work")
    spark = session(
        "cluster",
        "local-cluster[2,1,1024]",
        {
            "spark.ui.enabled": "false",
            "spark.driver.port": str(PORT),
            "spark.driver.extraJavaOptions": jvm_options(),
            "spark.executor.extraJavaOptions": jvm_options(),
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
            "spark.local.dir": str(folder / "local"),
            "spark.log.level": "OFF",
        },
    )
    frame = (
        spark.read.format("tmqp")
        .option("url", url)
        .option("subscribe", "cluster/1")
        .option("maxRecordsPerPartition", 500)
        .option("batchBytes", "20k")
        .schema("seq long, value binary")
        .load()
    )
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(spark, killed), daemon=True)
    killer.start()
    found = [row["seq"] for row in frame.selectExpr("seq").collect()]
    killer.join(PATIENCE_S)
    print(json.dumps({"seq": found, "killed_after": killed}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
