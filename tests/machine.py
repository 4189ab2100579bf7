"""How fast this machine is, now, and a stopwatch for steps: what limits on time are measured in.

A limit in milliseconds says something of a program and of the machine that it ran on.  Tests that
guard against work without a bound want the program alone, so they allow so many *machines*: the
time of a piece of plain Python that makes objects and walks over them, as a broker does.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

__all__ = ["Stopwatch", "TooSlowError", "machine_s", "step_limit_s", "thrice"]

P = ParamSpec("P")
T = TypeVar("T")

_OBJECTS = 50_000
#: What the machine takes whose figures the documents print.
_DOCUMENTED_MACHINE_S = 0.025
#: What a step may take, for the compiled server.
_STEP_TARGET_S = 0.020
#: How often a test is tried that found a step too long.
_TRIES = 3


class TooSlowError(AssertionError):
    """A step took longer than it may: the program's fault, or once in a while the machine's."""


class Stopwatch:
    """Runs steps and keeps the longest time one took: processor time of this thread alone, with
    the garbage collector off, because that looks at all objects that any test has left.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0

    def run(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one step, and return what it returns."""
        was_enabled = gc.isenabled()
        gc.disable()
        started = time.thread_time()
        try:
            return step(*args, **kwargs)
        finally:
            self.longest_s = max(self.longest_s, time.thread_time() - started)
            if was_enabled:
                gc.enable()

    def within(self, machines: float) -> None:
        """Raise ``TooSlowError`` if the longest step took more than so many machines."""
        if self.longest_s > machines * machine_s():
            raise TooSlowError(
                f"{self.longest_s:.3f} s, {self.longest_s / machine_s():.1f} machines"
            )


def thrice(test: Callable[P, None]) -> Callable[P, None]:
    """Try a test again that found a step too long.

    A machine that others use stands still now and then; work without a bound is there each time.
    """

    @wraps(test)
    def tried(*args: P.args, **kwargs: P.kwargs) -> None:
        for _ in range(_TRIES - 1):
            try:
                return test(*args, **kwargs)
            except TooSlowError as error:
                print(f"too slow, tried again: {error}")
        return test(*args, **kwargs)

    return tried


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


def step_limit_s(*, compiled: bool) -> float:
    """Seconds that a step at the largest state may take: three times the target of 20 ms where the
    server is compiled, else twelve times, and more on a machine slower than the one of the
    documents.

    On a faster one it is not less: such a state is larger than a processor's cache, and waits for
    memory.
    """
    times = 3 if compiled else 12
    return times * _STEP_TARGET_S * max(1.0, machine_s() / _DOCUMENTED_MACHINE_S)
