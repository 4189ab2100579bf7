"""Starts Spark's Python workers for tasks: a daemon that has loaded everything in advance.

``spark.python.daemon.module=tmqp_spark.daemon``.  Theory of operation.  Spark starts one Python
process, its daemon, which forks a worker for each concurrent task.  PySpark's own daemon loads
almost nothing before it forks, so each worker loads pyspark, numpy, pyarrow and this package, and
collects garbage among all of it after each task.  This daemon loads them once, excludes them from
garbage collection, and then behaves as PySpark's own: the communication with the JVM is unchanged.

A process with threads must not be forked.  The packages that are loaded here start none if Spark
sets ``OMP_NUM_THREADS=1``, as it does by default; Arrow's second allocator is disabled before.  If
there is a thread nevertheless, or something cannot be loaded, this process becomes PySpark's daemon
before it has communicated with the JVM.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

__all__ = ["main"]

#: The modules that workers need for the tasks of these sources.
_NEEDED: Final = (
    "numpy",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "tmqp_spark.source",
)
#: Stops the jemalloc in Arrow from starting a thread; nothing else reads this variable.
_ALLOCATOR: Final = ("JE_ARROW_MALLOC_CONF", "background_thread:false")


def main() -> None:
    """Load what workers need, and be Spark's daemon."""
    manager = _load()
    if manager is None or _threads() != 1:
        arguments = [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]]
        os.execv(sys.executable, arguments)  # noqa: S606 - this very Python
    os.register_at_fork(after_in_child=_differ)
    gc.collect()
    gc.freeze()
    manager()


def _load() -> Any:
    """Load everything and return PySpark's daemon; None if something cannot be loaded."""
    os.environ.setdefault(*_ALLOCATOR)
    try:
        for name in _NEEDED:
            import_module(name)
        daemon: Any = import_module("pyspark.daemon")
        import_module("tmqp_spark.workers").end_quietly(daemon)
    except Exception:  # noqa: BLE001 - whatever it is, PySpark's own daemon does without
        return None
    return daemon.manager


def _threads() -> int:
    """The number of threads of this process; 0 if the system does not report it."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


def _differ() -> None:
    """Seed numpy's global random generator differently in each worker."""
    source = sys.modules.get("numpy.random")
    if source is not None:
        source.seed()


if __name__ == "__main__":
    main()
