"""What all tasks of one Python worker share: its memory, what happens to it between tasks, and
its end.

Answers of some megabytes come and go, and so do the columns made of them.  The C library would give
such memory back to the system and ask for it again each time; the system hands it out page by page,
each filled with zeros at the first touch, which costs more than all that is done to the messages.
So a worker keeps what is free, up to a bound.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from typing import Any, Final

__all__ = ["end_quietly", "settle_memory"]

#: In which process, and how many modules it had.
_settled: list[int] = [0, 0]

#: Of glibc's malloc.h: how many free bytes at the end of the heap are too many, and from which size
#: on memory is asked of the system by itself, and given back at once.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MOST_KEPT_BYTES: Final = 128 << 20
#: What the JVM starts for a streaming query, and answers to until the query is stopped.
_STREAM_PLANNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"
#: The most that glibc takes.
_APART_BYTES: Final = 32 << 20


def settle_memory() -> None:
    """Take what was loaded so far out of the garbage collector's sight: at the beginning of a
    worker's first task, and whenever something was loaded since.  The first time in a process, have
    it keep free memory too.

    Spark's Python workers collect garbage after each task and each question of the planner: 25 ms
    of looking at modules, of which some are loaded by the first rows only.
    """
    now = [os.getpid(), len(sys.modules)]
    if _settled != now:
        if _settled[0] != now[0]:
            _keep_memory()
        _settled[:] = now
        gc.collect()
        gc.freeze()


def _keep_memory() -> None:
    """Keep up to 128 MiB of free memory in this process, where the C library is glibc."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has none
        return
    mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _APART_BYTES)


def end_quietly(daemon: Any) -> None:
    """Have the workers of PySpark's daemon end without a traceback when a session ends.

    The JVM then closes the connections of idle workers, and PySpark prints a ``BrokenPipeError``
    for each of them.

    :param daemon: the module ``pyspark.daemon``, which looks its ``worker`` up for each task.
    """
    worker: Callable[..., int] = daemon.worker

    def quiet(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (BrokenPipeError, ConnectionResetError):
            return 1  # any code but 0 ends the process

    daemon.worker = quiet


def _end_planner_quietly() -> None:
    """The same in a process that plans: Spark starts those with PySpark's own daemon, and one for
    each streaming query with a program that is told nothing when the query is stopped."""
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
