"""What a Python worker does about its memory, and how it ends."""

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


#: A process like the one that plans a streaming query, which ends with an error.
_ENDS = """
import sys
from importlib.machinery import ModuleSpec
sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
import tmqp_spark.workers
try:
    raise getattr(__builtins__, sys.argv[2])("the end")
except OSError as error:
    raise BrokenPipeError("once more") from error
"""


@pytest.mark.parametrize(
    ("program", "error", "shown"),
    [
        ("pyspark.sql.streaming.python_streaming_source_runner", "BrokenPipeError", False),
        ("pyspark.sql.streaming.python_streaming_source_runner", "ValueError", True),
        ("anything_else", "BrokenPipeError", True),
    ],
)
def test_a_stopped_query_printed_three_tracebacks(program: str, error: str, shown: bool) -> None:
    """The JVM closed the connection of the process that plans the query, which wrote to it."""
    done = subprocess.run(
        [sys.executable, "-c", _ENDS, program, error],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) is shown, done.stderr
    assert shown or done.stderr == ""


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
