"""Owns what all tasks of one Python worker share: its memory's rest."""

from __future__ import annotations

import gc
import os
from typing import Final

__all__ = ["settle_memory"]

#: At the beginning of the first task, and of the second: the first has loaded what is left.
_TIMES: Final = 2
_settled: list[int] = [0, 0]


def settle_memory() -> None:
    """Take what was loaded so far out of the garbage collector's sight, twice in a process.

    Spark's Python workers collect garbage after each task: 25 ms of looking at modules.
    """
    process, times = _settled
    if process != os.getpid():
        times = 0
    if times < _TIMES:
        _settled[:] = os.getpid(), times + 1
        gc.collect()
        gc.freeze()
