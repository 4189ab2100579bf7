"""What work cost: processor time of Spark's JVM, of its Python workers and of the broker.

Theory of operation.  Linux tells in ``/proc/PID/stat`` what a process has used, and what those of
its children had used that have ended.  Spark's Python workers are children of the JVM (and of the
daemon that it starts), so the JVM's tree without the JVM itself is Python's part, with planning;
the JVM's own has that of programs which it runs to manage files.  When a daemon ends before its
children, what they used is lost: such a look is distinguished (``lost``), and what was done is done
again.

The clock ticks a hundred times a second: what is measured should take longer than a few ticks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["Spent", "Usage", "has_proc", "tree"]

_PROC: Final = Path("/proc")
#: Behind the name in /proc/PID/stat: parent, and user and system time, own and of ended children.
_PARENT: Final = 1
_TIMES: Final = slice(11, 15)


class Spent:
    """What some work took: wall seconds, and processor seconds of the JVM, of Python workers and of
    the broker.  Processor seconds are None where the system does not tell."""

    __slots__ = ("broker_s", "jvm_s", "lost", "python_s", "wall_s")

    def __init__(
        self,
        wall_s: float,
        jvm_s: float | None = None,
        python_s: float | None = None,
        broker_s: float | None = None,
        *,
        lost: bool = False,
    ) -> None:
        #: Processes ended meanwhile, so what they used is not known.
        self.lost = lost
        self.wall_s = wall_s
        self.jvm_s = jvm_s
        self.python_s = python_s
        self.broker_s = broker_s

    @property
    def spark_s(self) -> float | None:
        """Processor seconds of Spark: the JVM and its Python workers."""
        if self.jvm_s is None or self.python_s is None:
            return None
        return self.jvm_s + self.python_s

    @property
    def all_s(self) -> float | None:
        """Processor seconds of Spark and the broker."""
        if self.spark_s is None or self.broker_s is None:
            return None
        return self.spark_s + self.broker_s


class Usage:
    """What has been used so far; :meth:`since` tells what has been used since another look.

    :param wall_s: a monotonic clock.
    :param jvm: the JVM's process, :param broker: the broker's; 0 for none.
    """

    __slots__ = ("_broker_s", "_jvm_s", "_python", "_wall_s")

    def __init__(self, wall_s: float, jvm: int, broker: int) -> None:
        self._wall_s = wall_s
        self._jvm_s: float | None = None
        self._broker_s: float | None = None
        self._python: dict[int, float] = {}
        if has_proc():
            self._python = tree(jvm) if jvm else {}
            self._jvm_s = self._python.pop(jvm, 0.0)
            self._broker_s = sum(tree(broker).values()) if broker else 0.0

    def since(self, before: Usage) -> Spent:
        """What has been used between two looks."""
        wall_s = self._wall_s - before._wall_s
        if self._jvm_s is None:
            return Spent(wall_s)
        return Spent(
            wall_s,
            _less(self._jvm_s, before._jvm_s),
            sum(self._python.values()) - sum(before._python.values()),
            _less(self._broker_s, before._broker_s),
            lost=not before._python.keys() <= self._python.keys(),
        )


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def has_proc() -> bool:
    """The system tells what processes use."""
    return (_PROC / "self" / "stat").exists()


def tree(pid: int) -> dict[int, float]:
    """Processor seconds of a process and of all that it started and that they started, by process;
    with each those of its children that have ended and were waited for."""
    children: dict[int, list[int]] = {}
    found: dict[int, list[str]] = {}
    for each in _PROC.iterdir():
        if each.name.isdigit():
            fields = _stat(int(each.name))
            if fields:
                found[int(each.name)] = fields
                children.setdefault(int(fields[_PARENT]), []).append(int(each.name))
    used: dict[int, float] = {}
    waiting = [pid]
    while waiting:
        number = waiting.pop()
        if number in found:
            used[number] = sum(map(int, found[number][_TIMES])) / _ticks()
        waiting += children.get(number, [])
    return used


def _stat(pid: int) -> list[str]:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name stands in brackets, and may hold anything.
    return text.rpartition(")")[2].split()


def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")
