"""What the tests with Spark share: one session a process, a real broker, quick JVM settings.

A test that asks for ``spark`` is marked ``cold`` (it does not care which build is loaded).  It runs
beside others: each process of the tests has a session and a broker of its own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.ports import free_port
from tests.project import ROOT
from tests.tmqp_spark.reading import LinkTo
from tmqp_spark.classes import SharedClasses
from tmqp_spark.java import ensure_java
from tmqp_spark.options import ConnectionOptions, read_options
from tmqp_spark.pipelines.launch import LOCAL_SETTINGS
from tmqp_spark.session import session
from tmqp_spark.testing import Broker
from tmqp_spark.transport import BrokerLink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_TIMEOUT_S: Final = 180
#: What Spark says of a Python process that took more than ten seconds to start.  No setting gives
#: it more time, and on a machine with much other work it needs more.
_LATE_WORKER: Final = "Python worker failed to connect back"
CACHE: Final = ROOT / "build" / "cache" / "spark"
#: Starts a Spark, asks it something, and ends it in order.
_STARTS_SPARK: Final = """
from tmqp_spark.pipelines.launch import spark_for
with spark_for("classes", "local[1]") as spark:
    spark.range(10).collect()
"""
#: What a client of Spark Connect imports, and where it comes from.
_CONNECT: Final = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
    "pandas": "pandas",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start a JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("cold")
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))
            item.add_marker(pytest.mark.flaky(reruns=3, only_rerun=[_LATE_WORKER]))
            # What pyspark warns of is not ours to mend.
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that runs as long as the tests do: give each test channels of its own."""
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker for one test, which may stop and start it."""
    with Broker(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def link_to() -> Iterator[LinkTo]:
    """Makes links to brokers and closes them."""
    made: list[BrokerLink] = []

    def link(broker: Broker, **options: object) -> BrokerLink:
        given = {"url": broker.url, **{name: str(value) for name, value in options.items()}}
        made.append(BrokerLink(read_options(ConnectionOptions, given)))
        return made[-1]

    yield link
    for each in made:
        each.close()


def spark_environment() -> None:
    """Make JVM and workers find this checkout, and each other on the loopback."""
    ensure_java(cache=CACHE)
    # Commands in processes of their own share Java's classes there.
    os.environ["XDG_CACHE_HOME"] = str(CACHE)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    places = [str(ROOT / "src"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(places))


def jvm_options() -> str:
    """What makes a JVM quick that lives a minute: no second compiler, and Java's shared classes as
    far as something has written them down (:func:`share_classes`, or a command that was tried)."""
    classes = SharedClasses(ensure_java(cache=CACHE), CACHE / "tmqp-spark")
    shared = "" if classes.to_make else classes.options()
    return f"{LOCAL_SETTINGS['spark.driver.extraJavaOptions']} {shared}".strip()


def quick_settings(folder: Path) -> dict[str, str]:
    """The settings of a small session that lives a minute, with its files in a folder."""
    return {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": jvm_options(),
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }


def share_classes() -> None:
    """Have Java's classes written down for the JVMs to come, which then start in half the time."""
    if SharedClasses(ensure_java(cache=CACHE), CACHE / "tmqp-spark").to_make:
        subprocess.run([sys.executable, "-c", _STARTS_SPARK], check=True, timeout=SPARK_TIMEOUT_S)


def missing_for_connect() -> list[str]:
    """The packages that a client of Spark Connect needs and that are not there."""
    found: list[str] = []
    for module, package in _CONNECT.items():
        try:
            there = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            found.append(package)
    return found


@pytest.fixture(scope="session")
def connect_port() -> int:
    """Where the session is a server of Spark Connect; 0 where no client could be run."""
    return 0 if missing_for_connect() else free_port()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, connect_port: int) -> Iterator[SparkSession]:
    """The session: two threads, each task tried up to three times."""
    spark_environment()
    settings = quick_settings(tmp_path_factory.mktemp("spark"))
    if connect_port:
        settings["spark.plugins"] = "org.apache.spark.sql.connect.SparkConnectPlugin"
        # On another address of the machine a connection that goes out may have this port.
        settings["spark.connect.grpc.binding.address"] = "127.0.0.1"
        settings["spark.connect.grpc.binding.port"] = str(connect_port)
    found = session("tests", "local[2,3]", settings)
    expected = os.environ.get("TMQP_EXPECT_PYSPARK", found.version)
    assert found.version == expected, "another PySpark was found in the path"
    yield found
    found.stop()
