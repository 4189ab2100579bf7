"""A job on a cluster, given to it by spark-submit: run by a test.

It does what docs/guides/spark_cluster.md says, with the code of that page, while an executor
is killed and a task is slower than the others.  Arguments: the broker's address, the cluster's, a
folder, into which it writes what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from tests.tmqp_spark import killing
from tests.tmqp_spark.pages import blocks

PATIENCE_S: Final = 120
PORT: Final = int(os.environ.get("TMQP_TEST_PORT", "0"))


def executors() -> list[int]:
    """The processes of our executors (of this very job, not of another one)."""
    # As wide as it is: pytest's workers say that lines have 80 characters.
    command = ["ps", "-wweo", "pid,args"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    mine = f"spark.driver.port={PORT}"
    return [
        int(line.split()[0])
        for line in listed.stdout.splitlines()
        if "CoarseGrainedExecutorBackend" in line and mine in line
    ]


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


def where_from(_: Any) -> str:
    """Where an executor has the package from."""
    import tmqp_spark  # noqa: PLC0415 - of that process

    return str(tmqp_spark.__file__)


def read(spark: Any, url: str) -> dict[str, Any]:
    """Read a queue while an executor is killed."""
    frame = (
        spark.read.format("tmqp")
        .option("url", url)
        .option("subscribe", "orders/1")
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
    return {"seq": found, "killed_after": killed}


#: Each write's name and channel, its guarantee, and who is struck: nobody is one who lingers.
WRITES: Final = {
    "once": ("exactly_once", "nobody"),
    "plain": ("at_least_once", "nobody"),
    "killed": ("exactly_once", "executor"),
}


def write(spark: Any, url: str, folder: Path, name: str) -> dict[str, Any]:
    """Write four parts, one of which is not finished in its middle, so that Spark does it twice."""
    guarantee, victim = WRITES[name]
    deadline = time.monotonic() + PATIENCE_S
    while len(executors()) < 2:
        assert time.monotonic() < deadline, "no other executor came"
        time.sleep(0.1)
    killing.arm(folder, victim, "rows")
    writer = spark.range(0, 4_000, 1, 4).selectExpr("cast(id as string) as value").write
    writer = writer.format("tmqp_killing").mode("append").option("url", url)
    writer = writer.option("kills", str(folder)).option("guarantee", guarantee)
    began = time.monotonic()
    writer.option("channel", name).option("queue", 1).option("createQueue", True).save()
    took = time.monotonic() - began
    return {"armed": killing.armed(folder), "s": took, "books": killing.books(url, name)}


def archive(url: str, cluster: str, folder: Path) -> list[Any]:
    """Run the commands of the page, to other places than it names; what they print."""
    from tmqp_spark.cli import cli  # noqa: PLC0415 - with Spark's environment

    found: list[Any] = []
    text = blocks("spark_cluster", "shell")["archives"]
    text = text.replace("spark://host:7077", cluster).replace("/mnt/archive", f"{folder}/arrow")
    text = text.replace("s3a://bucket/archive", f"{folder}/spark").replace(" --follow", "")
    for line in text.splitlines():
        command = [*shlex.split(line)[1:], "-a", url]
        done = CliRunner().invoke(cli, command, catch_exceptions=False)
        found.append(json.loads(done.stdout) if done.exit_code == 0 else done.stderr)
    return found


def main(url: str, cluster: str, folder: Path) -> None:
    codes = blocks("spark_cluster", "python")
    space: dict[str, Any] = {}
    exec(compile(codes["session"], "spark_cluster.md", "exec"), space)  # noqa: S102 - our own page
    spark = space["spark"]
    watching = codes["watching"].replace("/var/lib/node_exporter", str(folder))
    exec(compile(watching, "spark_cluster.md", "exec"), space)  # noqa: S102 - our own page
    said: dict[str, Any] = {"master": spark.sparkContext.master}
    said["places"] = spark.sparkContext.parallelize(range(2), 2).map(where_from).collect()
    said |= read(spark, url)
    killing.register(spark)
    for name in WRITES:
        said[name] = write(spark, url, folder, name)
    said["archives"] = archive(url, cluster, folder)
    (folder / "said.json").write_text(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
