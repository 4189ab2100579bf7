"""The daemon that starts Python workers: what it loads, and when it leaves that to PySpark."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import tmqp_spark
from tests.project import ROOT
from tmqp_spark.forking import SETTING, daemon_settings

_OURS = {SETTING: "tmqp_spark.daemon"}


def _python(folder: Path, text: str) -> str:
    """A program that Spark would start as Python."""
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


# --- In Spark -------------------------------------------------------------------------------------


def _look(_: Any) -> tuple[int, list[str], list[str], int]:
    loaded: list[str] = [name for name in ("numpy", "pyarrow") if name in sys.modules]
    command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode().split("\0")
    return os.getppid(), loaded, command, gc.get_freeze_count()


def test_workers_are_copies_of_a_process_that_has_loaded_everything(spark: SparkSession) -> None:
    assert spark.conf.get(SETTING) == "tmqp_spark.daemon"
    found = spark.sparkContext.parallelize([1, 2], 2).map(_look).collect()
    daemon, loaded, command, frozen = found[0]
    assert "numpy" in loaded
    assert "pyarrow" in loaded
    assert "tmqp_spark.daemon" in command
    assert frozen > 10_000
    assert {each[0] for each in found} == {daemon}


def _draw(_: Any) -> tuple[int, float, float]:
    time.sleep(0.3)  # so that each part has a worker of its own
    return os.getpid(), float(np.random.random()), random.random()


def test_workers_draw_different_numbers(spark: SparkSession) -> None:
    found = spark.sparkContext.parallelize([1, 2], 2).map(_draw).collect()
    for place in range(3):
        assert found[0][place] != found[1][place]


# --- Where it is used -----------------------------------------------------------------------------


def test_it_is_used_on_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(Path(tmqp_spark.__file__).parent.parent))
    assert daemon_settings("local[2,3]", {}) == _OURS
    assert daemon_settings("local", {}) == _OURS
    for master in (None, "local-cluster[2,1,1024]", "spark://host:7077", "yarn"):
        assert daemon_settings(master, {}) == {}


def test_a_daemon_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert daemon_settings("local[2]", {SETTING: "pyspark.daemon"}) == {}


@pytest.mark.parametrize("text", ["exit 1", "echo", "echo /somewhere/tmqp_spark/__init__.py"])
def test_another_python_may_not_have_the_package(tmp_path: Path, text: str) -> None:
    python = _python(tmp_path, text)
    assert daemon_settings("local[2]", {"spark.pyspark.python": python}) == {}
    assert daemon_settings("local[2]", {"spark.pyspark.python": python + "-none"}) == {}


# --- When something is not as it should be --------------------------------------------------------

_STANDINS = """
import os, sys
def stand_in(program, arguments):
    print(' '.join(arguments[1:]))
    os._exit(0)
os.execv = stand_in
sys.argv = ['daemon', 'pyspark.worker']
import tmqp_spark.daemon as daemon
"""


def _run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _STANDINS + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
    )
    return done.stdout.strip()


_PYSPARKS = "-m pyspark.daemon pyspark.worker"
_BE_THE_DAEMON = (
    "import pyspark.daemon\npyspark.daemon.manager = lambda: print('manager')\ndaemon.main()"
)


_AT_THE_END = """
import pyspark.daemon as theirs
def worker(sock, authenticated):
    raise sock()
theirs.worker = worker
def manager():
    print([theirs.worker(each, True) for each in (BrokenPipeError, ConnectionResetError)])
    try:
        theirs.worker(ValueError, True)
    except ValueError:
        print('others are raised')
theirs.manager = manager
daemon.main()
"""


def test_workers_printed_tracebacks_when_a_session_ended() -> None:
    """The JVM closes the connections of idle workers, for whom it is a broken pipe."""
    assert _run(_AT_THE_END, OMP_NUM_THREADS="1").splitlines() == ["[1, 1]", "others are raised"]


_A_PLANNER = """
import importlib.machinery
program = sys.modules['__main__']
program.__spec__ = importlib.machinery.ModuleSpec('pyspark.daemon', None)
def worker(sock, authenticated):
    raise sock()
import tmqp_spark.workers
print(worker(BrokenPipeError, True))
"""


def test_processes_that_plan_printed_tracebacks_too() -> None:
    """Spark starts those with PySpark's daemon whatever is set; it loads our formats later."""
    assert _run(_A_PLANNER) == "1"


def test_it_becomes_pysparks_daemon_with_everything_loaded() -> None:
    assert _run(_BE_THE_DAEMON, OMP_NUM_THREADS="1") == "manager"


def test_with_a_thread_it_leaves_everything_to_pyspark() -> None:
    thread = "import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()\n"
    assert _run(thread + _BE_THE_DAEMON, OMP_NUM_THREADS="1") == _PYSPARKS


@pytest.mark.parametrize("name", ["pyspark.worker", "pyspark.daemon", "numpy"])
def test_without_a_module_it_leaves_everything_to_pyspark(name: str) -> None:
    missing = f"sys.modules[{name!r}] = None\n"
    assert _run(missing + "daemon.main()", OMP_NUM_THREADS="1") == _PYSPARKS
