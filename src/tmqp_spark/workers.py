"""Owns what all tasks of one Python worker share: its memory's rest."""

from __future__ import annotations

import gc
import os

__all__ = ["settle_memory"]

_settled_in: int = 0


def settle_memory() -> None:
    """Take what was loaded so far out of the garbage collector's sight, once a process.

    Spark's Python workers collect garbage after each task: 25 ms of looking at modules.
    """
    global _settled_in  # noqa: PLW0603 - a fact about this process
    if _settled_in != os.getpid():
        _settled_in = os.getpid()
        gc.collect()
        gc.freeze()
