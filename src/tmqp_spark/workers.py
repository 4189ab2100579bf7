"""The Python worker of tasks: its memory, its garbage collection between tasks, and its end.

Tasks allocate and free answers of some megabytes, and the columns made from them.  The C library
would return such memory to the system and request it again each time; the system then provides it
page by page, filled with zeros, which costs more than the processing of the messages.  So a worker
keeps free memory, up to a limit.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from typing import Any, Final

__all__ = ["end_quietly", "settle_memory"]

#: The process of the last call of settle_memory, and the number of its modules then.
_settled: list[int] = [0, 0]

#: Options in glibc's malloc.h: the most free bytes at the end of the heap, and the size from which
#: on a block is requested from the system separately, and returned when it is freed.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MOST_KEPT_BYTES: Final = 128 << 20
#: The program that the JVM starts for a streaming query, and uses until the query is stopped.
_STREAM_PLANNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"
#: The largest value that glibc accepts for M_MMAP_THRESHOLD.
_APART_BYTES: Final = 32 << 20


def settle_memory() -> None:
    """Exclude everything loaded so far from garbage collection, and make the process keep free
    memory.  Call it at the beginning of each task, and after loading more modules; other calls have
    no effect.

    Spark's Python workers collect garbage after each task and each request of the planner, and
    spend 25 ms on modules, some of which only the first rows load.
    """
    now = [os.getpid(), len(sys.modules)]
    if _settled != now:
        if _settled[0] != now[0]:
            _keep_memory()
        _settled[:] = now
        gc.collect()
        gc.freeze()


def _keep_memory() -> None:
    """Keep up to 128 MiB of free memory in this process, if the C library is glibc."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has none
        return
    mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _APART_BYTES)


def end_quietly(daemon: Any) -> None:
    """Let the workers of PySpark's daemon end without a traceback when a session ends.

    The JVM then closes the connections of idle workers, and PySpark prints a ``BrokenPipeError``
    for each of them.

    :param daemon: the module ``pyspark.daemon``, which looks up its ``worker`` for each task.
    """
    worker: Callable[..., int] = daemon.worker

    def quiet(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (BrokenPipeError, ConnectionResetError):
            return 1  # any code but 0 ends the process

    daemon.worker = quiet


def _end_planner_quietly() -> None:
    """Do the same in a planning process: Spark starts these with PySpark's own daemon, and for each
    streaming query one with a program that does not learn that the query was stopped."""
    program: Any = sys.modules.get("__main__")
    specification = getattr(program, "__spec__", None)
    name = "" if specification is None else specification.name
    if name == "pyspark.daemon":
        end_quietly(program)
    elif name == _STREAM_PLANNER:
        sys.excepthook = _show_unless_over


def _show_unless_over(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an error that ends the process, unless it is the end of the JVM's connection."""
    if not issubclass(kind, (BrokenPipeError, ConnectionResetError)):
        sys.__excepthook__(kind, error, trace)


_end_planner_quietly()
