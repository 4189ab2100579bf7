"""What a Python worker does about its memory."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

#: Takes and leaves what answers and columns take, and says how many pages were handed out for it.
_TURNS = """
import resource, sys
if sys.argv[1] == "settled":
    from tmqp_spark.workers import settle_memory
    settle_memory()

def turn():
    kept = [bytearray(6 << 20) for _ in range(4)]
    for each in kept:
        each[::4096] = each[::4096]

turn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    turn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_PAGES_A_TURN = 4 * (6 << 20) // 4096


def _pages(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _TURNS, how], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="needs glibc's mallopt",
)
def test_memory_that_comes_and_goes_is_not_asked_of_the_system_each_time() -> None:
    assert _pages("as it is") > 5 * _PAGES_A_TURN, "else there is nothing to be gained"
    assert _pages("settled") < _PAGES_A_TURN
