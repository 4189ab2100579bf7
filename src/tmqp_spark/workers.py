"""Owns what all tasks of one Python worker share: its memory's rest."""

from __future__ import annotations

import gc
import os
import sys

__all__ = ["settle_memory"]

#: The process that was seen to last, and how many modules it had then.
_settled: tuple[int, int] = (0, 0)


def settle_memory() -> None:
    """Take what was loaded so far out of the garbage collector's sight, unless that was done.

    Spark's Python workers collect garbage after each task and each question of the planner: 25 ms
    of looking at modules, of which some are loaded by the first rows only.
    """
    global _settled  # noqa: PLW0603 - a fact about this process
    found = (os.getpid(), len(sys.modules))
    if _settled != found:
        _settled = found
        gc.collect()
        gc.freeze()
