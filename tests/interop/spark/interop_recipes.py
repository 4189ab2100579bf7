"""The recipes of docs/guides/spark_recipes.md that need more than this package: jars, a cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from tests.interop.building import need, unavailable
from tests.interop.spark.packages import other_pyspark
from tests.project import ROOT
from tests.tmqp_spark.conftest import spark_environment
from tests.tmqp_spark.pages import blocks
from tests.tmqp_spark.standalone import HOME, Cluster
from tmqp_spark.java import ensure_java
from tmqp_spark.testing import Broker

pytestmark = [pytest.mark.interop, pytest.mark.cold, pytest.mark.timeout(400)]

#: What Spark says when it cannot fetch a jar.
_NO_JARS: Final = "UNRESOLVED DEPENDENCIES"
#: A JVM that lives for seconds.
_QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker") as running:
        yield running


def ran(name: str, broker: Broker, folder: Path) -> Any:
    """What comes of a recipe that fetches jars; skips the test if Spark cannot fetch them."""
    environment = other_pyspark(name)
    ensure_java()
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.spark.recipe", name, broker.url],
        cwd=folder,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": _QUICK},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    if _NO_JARS in said:
        unavailable(name, "Spark cannot fetch its jars")
    assert done.returncode == 0, said[-6_000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["pyspark"] == "4.2.0"
    return result["found"]


def test_avro_is_written_and_read(broker: Broker, tmp_path: Path) -> None:
    assert sorted(row[1:] for row in ran("avro", broker, tmp_path)) == [["pizza", 9], ["soup", 5]]


def test_a_table_of_delta_takes_a_stream_once(broker: Broker, tmp_path: Path) -> None:
    for queue in (1, 2):
        broker.push("orders", queue, [b"%d" % number for number in range(300)])
    found = ran("delta", broker, tmp_path)
    assert found == [[queue, number] for queue in (1, 2) for number in range(300)]


def checkout(folder: Path) -> Path:
    """A copy of what the package is made of: pip writes beside it."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        folder.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_a_job_is_submitted_with_the_package(broker: Broker, tmp_path: Path) -> None:
    need("spark-submit", "bash", "zip")
    for queue in (1, 2):
        broker.push("orders", queue, [b"x"] * 100 * queue)
    spark_environment()
    job = blocks("spark_recipes", "job")["counts"].replace("tmq://broker:2622", broker.url)
    (tmp_path / "job.py").write_text(job)
    programs = [str(Path(sys.executable).parent), str(HOME / "bin"), os.environ["PATH"]]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "TMQP_COMPILE": "0",
        "PATH": os.pathsep.join(programs),
    }
    package = checkout(tmp_path / "checkout")
    with Cluster(tmp_path, {"PYTHONPATH": "", "PYSPARK_PYTHON": sys.executable}) as cluster:
        text = blocks("spark_recipes", "shell")["submit"]
        text = text.replace(" tmqp &&", f" {package} &&").replace("spark://host:7077", cluster.url)
        done = subprocess.run(
            ["bash", "-ec", text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout[-3_000:] + done.stderr[-3_000:] + cluster.words()
    assert done.returncode == 0, said
    rows = pq.read_table(tmp_path / "counts").to_pylist()
    found = sorted((row["channel"], row["queue"], row["count"]) for row in rows)
    assert found == [("orders", 1, 100), ("orders", 2, 200)]
