"""Owns the start of Spark's Python workers for tasks: a daemon that has loaded everything before.

``spark.python.daemon.module=tmqp_spark.daemon``.  Theory of operation.  Spark starts one Python
process, its daemon, which forks a worker for each task that runs at once.  PySpark's own daemon
loads next to nothing before it forks, so each worker loads pyspark, numpy, pyarrow and this package
for itself, and looks through all of it for garbage after each task.  This daemon loads them once,
takes them out of the garbage collector's sight, and then is PySpark's own: what is said to the JVM
is none of our business.

A process that has threads must not be forked.  What is loaded here starts none where Spark sets
``OMP_NUM_THREADS=1``, as it does unless told otherwise; Arrow's second allocator is told before.
Where there is one all the same, or anything cannot be loaded, this process becomes PySpark's daemon
as it is, before it has said a word to the JVM.
"""

from __future__ import annotations

import gc
import os
import shutil
import site
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

__all__ = ["SETTING", "daemon_settings", "main"]

SETTING: Final = "spark.python.daemon.module"
_NAME: Final = "tmqp_spark.daemon"
#: What workers need of the tasks that these sources have.
_NEEDED: Final = (
    "numpy",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "tmqp_spark.source",
)
#: Arrow's bundled jemalloc has a thread unless it is told to have none; nothing else looks here.
_ALLOCATOR: Final = ("JE_ARROW_MALLOC_CONF", "background_thread:false")
_LOCATE: Final = (
    "import importlib.util as u; s = u.find_spec('tmqp_spark'); print(s.origin if s else '')"
)
_PATIENCE_S: Final = 20


def main() -> None:
    """Load what workers need, and be Spark's daemon."""
    manager = _load()
    if manager is None or _threads() != 1:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])  # noqa: S606
    os.register_at_fork(after_in_child=_differ)
    gc.collect()
    gc.freeze()
    manager()


def _load() -> Any:
    """PySpark's daemon, when everything is loaded; None when something cannot be."""
    os.environ.setdefault(*_ALLOCATOR)
    try:
        for name in _NEEDED:
            import_module(name)
        return import_module("pyspark.daemon").manager
    except Exception:  # noqa: BLE001 - whatever it is, PySpark's own daemon does without
        return None


def _threads() -> int:
    """How many threads this process has; 0 where the system does not tell."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


def _differ() -> None:
    """Workers that draw numbers from numpy's common source must not draw the same."""
    source = sys.modules.get("numpy.random")
    if source is not None:
        source.seed()


# --- For whom it is right ------------------------------------------------------------------------


def daemon_settings(master: str | None, settings: dict[str, Any]) -> dict[str, str]:
    """The setting that has Spark use this daemon, where it surely can; else none.

    That is on this machine alone: other executors may get the package with a job, or not at all,
    and a daemon that is not there would leave them without any Python.

    :param settings: those that the user gave.
    """
    if master is None or not master.startswith("local") or master.startswith("local-cluster"):
        return {}
    if SETTING in settings or not hasattr(os, "fork"):
        return {}
    python = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or "python3"
    return {SETTING: _NAME} if _has_package(str(python)) else {}


def _has_package(python: str) -> bool:
    """Whether a Python finds the very package that this is."""
    here = Path(__file__).parent
    found = shutil.which(python)
    if found is None:
        return False
    if found == sys.executable and str(here.parent) in site.getsitepackages():
        return True
    try:
        asked = subprocess.run(  # noqa: S603 - the Python that Spark starts as well
            [found, "-c", _LOCATE],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    origin = asked.stdout.strip()
    return bool(origin) and Path(origin).parent.resolve() == here.resolve()


if __name__ == "__main__":
    main()
