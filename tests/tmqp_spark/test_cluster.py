"""A cluster of two machines: what the guide says, an executor that dies, a task done twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.ports import free_port
from tests.project import ROOT
from tests.tmqp_spark import killing
from tests.tmqp_spark.conftest import jvm_options, spark_environment
from tests.tmqp_spark.standalone import HOME, Cluster
from tmqp_spark.testing import Broker

COUNT: Final = 20_000
#: So a slow task is noticed soon, and a second copy of it started.
SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "2",
    "spark.speculation.minTaskRuntime": "1s",
}


def shipped(folder: Path) -> Path:
    """What the guide puts into a file for the executors: the package as pip would install it."""
    place = folder / "deps"
    place.mkdir()
    for name in ("tmqp", "tmqp_client", "tmqp_spark"):
        shutil.copytree(
            ROOT / "src" / name, place / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for module in (ROOT / "src").glob("pyspark_*.py"):
        shutil.copy(module, place)
    return Path(shutil.make_archive(str(folder / "tmqp"), "zip", place))


def bare(folder: Path) -> Path:
    """A place that makes an environment poor: there is no pandas, and a broken module of somebody
    else hides all formats from Spark."""
    place = folder / "bare"
    place.mkdir()
    (place / "pyspark_neighbour.py").write_text("raise RuntimeError('broken')\n")
    (place / "pandas.py").write_text("raise ImportError('there is no pandas here')\n")
    return place


def submit(cluster: Cluster, url: str, folder: Path, environment: dict[str, str]) -> Any:
    """Give the job to the cluster, as the guide does; what came of it."""
    settings = {
        **SPECULATION,
        "spark.ui.enabled": "false",
        "spark.driver.port": environment["TMQP_TEST_PORT"],
        "spark.driver.extraJavaOptions": jvm_options(),
        "spark.executor.extraJavaOptions": jvm_options(),
        "spark.executor.memory": "512m",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "OFF",
    }
    command = [str(HOME / "bin" / "spark-submit"), "--master", cluster.url]
    command += ["--py-files", str(shipped(folder))]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    job = str(Path(__file__).with_name("cluster_job.py"))
    ran = subprocess.run(
        [*command, job, url, cluster.url, str(folder)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    said = ran.stdout[-4_000:] + ran.stderr[-4_000:] + cluster.words()
    assert ran.returncode == 0, said
    return json.loads((folder / "said.json").read_text())


@pytest.mark.long
@pytest.mark.cold
@pytest.mark.timeout(600)
def test_a_cluster_reads_and_writes_once_whatever_dies_or_lingers(
    own_broker: Broker, tmp_path: Path
) -> None:
    own_broker.push("orders", 1, [b"x" * 1_000] * COUNT)
    spark_environment()
    poor = str(bare(tmp_path))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), poor]),
        "TMQP_TEST_PORT": str(free_port()),
    }
    # Executors must find nothing but what is shipped.
    away = {"PYTHONPATH": poor, "SPARK_LOCAL_IP": "", "PYSPARK_PYTHON": sys.executable}
    with Cluster(tmp_path, away) as cluster:
        said = submit(cluster, own_broker.url, tmp_path, environment)
    assert said["master"].startswith("spark://")
    assert all("tmqp.zip" in place for place in said["places"]), "executors have it by --py-files"
    # An executor dies while it reads.
    assert said["killed_after"], "no executor was killed"
    assert said["killed_after"][0] < COUNT // 500, "it was too late"
    assert sorted(said["seq"]) == list(range(1, COUNT + 1))
    # A task lingers, and a second copy of it does the same work.
    once, plain, killed = said["once"], said["plain"], said["killed"]
    assert once["armed"] == plain["armed"] == killed["armed"] == []
    assert max(once["s"], plain["s"]) < killing.LINGER_S, "nobody waited for the slow one"
    assert once["books"] == [4_000, 0, 3_999]
    assert plain["books"][1] > 0, "the slow one had written: at least once shows it"
    # An executor dies while it writes.
    assert killed["books"] == [4_000, 0, 3_999]
    assert [found["messages"] for found in said["archives"]] == [COUNT, COUNT]
