"""Owns what all tasks of one Python worker share: its memory's rest."""

from __future__ import annotations

import gc
import os
import sys

__all__ = ["settle_memory"]

#: In which process, and how many modules it had.
_settled: list[int] = [0, 0]


def settle_memory() -> None:
    """Take what was loaded so far out of the garbage collector's sight: at the beginning of a
    worker's first task, and whenever something was loaded since.

    Spark's Python workers collect garbage after each task and each question of the planner: 25 ms
    of looking at modules, of which some are loaded by the first rows only.
    """
    now = [os.getpid(), len(sys.modules)]
    if _settled != now:
        _settled[:] = now
        gc.collect()
        gc.freeze()
