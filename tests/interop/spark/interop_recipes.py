"""The recipes of docs/guides/spark_recipes.md that need more than this package: jars, a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from google.protobuf.duration_pb2 import Duration

from tests.interop.building import need
from tests.interop.spark.packages import MARKS, ran
from tests.project import ROOT
from tests.tmqp_spark.conftest import spark_environment
from tests.tmqp_spark.pages import blocks
from tests.tmqp_spark.standalone import HOME, Cluster
from tmqp_spark.testing import Broker

pytestmark = MARKS


def recipe(name: str, broker: Broker, folder: Path) -> Any:
    """What comes of a recipe that fetches jars."""
    said = ran("recipe", name, broker.url, folder=folder)
    assert said["pyspark"] == "4.2.0"
    return said["found"]


def test_avro_is_written_and_read(broker: Broker, tmp_path: Path) -> None:
    found = recipe("avro", broker, tmp_path)
    assert sorted(row[1:] for row in found) == [["pizza", 9], ["soup", 5]]


def test_protobuf_is_decoded_by_spark_itself(broker: Broker, tmp_path: Path) -> None:
    values = [Duration(seconds=number, nanos=7).SerializeToString() for number in range(50)]
    broker.push("durations", 1, values)
    found = recipe("protobuf_jar", broker, tmp_path)
    assert found == [[number + 1, number, 7] for number in range(50)]


@pytest.mark.parametrize("name", ["delta_driver", "delta"])
def test_a_table_of_delta_takes_a_stream_once(broker: Broker, tmp_path: Path, name: str) -> None:
    for queue in (1, 2):
        broker.push("orders", queue, [b"%d" % number for number in range(300)])
    found = recipe(name, broker, tmp_path)
    assert found == [[queue, number] for queue in (1, 2) for number in range(300)]


def checkout(folder: Path) -> Path:
    """A copy of what the package is made of: pip writes beside it."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        folder.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_a_job_is_submitted_with_the_package(broker: Broker, tmp_path: Path) -> None:
    need("pyspark", "bash", "zip")
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
