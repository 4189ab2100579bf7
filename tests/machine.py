"""How fast this machine is, now: what limits on time are measured in.

A limit in milliseconds says something of a program and of the machine that it ran on.  Tests that
guard against work without a bound want the program alone, so they allow so many *machines*: the
time of a piece of plain Python that makes objects and walks over them, as a broker does.
"""

from __future__ import annotations

import gc
import math
import time
from functools import cache

__all__ = ["machine_s"]

_OBJECTS = 50_000


class _Item:
    __slots__ = ("name", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = str(number)


def _work() -> int:
    items = {number: _Item(number) for number in range(_OBJECTS)}
    return sum(item.number for item in items.values())


@cache
def machine_s() -> float:
    """Measure this machine: seconds of processor time, the best of five; about 0.025 on the one
    whose figures the documents print.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    best = math.inf
    for _ in range(5):
        start = time.process_time()
        _work()
        best = min(best, time.process_time() - start)
    if was_enabled:
        gc.enable()
    return best
