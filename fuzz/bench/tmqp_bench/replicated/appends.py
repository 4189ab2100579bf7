"""Appends to the log of a group alone: what it would bring to have several of them out at a time.

A leader has one append out, and gathers the next one meanwhile.  Here several threads append one
entry after the other.  One that overtakes the entry before it is refused, because the log takes no
number but the next one, and is asked again: so the order stands, and what is lost is time.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from tmqp_server.storage.log import (
    Appended,
    AppendEntry,
    Claim,
    Led,
    LogAnswer,
    LogRequest,
    Misplaced,
    SharedLog,
    UnansweredError,
)

__all__ = ["BLOCK_BYTES", "Appends", "appended"]

#: A block of 256 messages of 100 bytes, with their entries.
BLOCK_BYTES: Final = 256 * 156
_LEASE_S: Final = 60.0


class Appends:
    """What came of it: the time that each append took in seconds, and how many ``overtook``."""

    def __init__(self) -> None:
        self.times_s: list[float] = []
        self.overtook = 0


def appended(log: SharedLog, at_a_time: int, size: int, seconds: float) -> Appends:
    """Append entries to a log that is empty, so many at a time, as long as that."""
    led = _answer(log, Claim("bench", "tmq://bench", "bench", _LEASE_S))
    assert isinstance(led, Led)
    assert led.leader is not None
    epoch, data = led.leader.epoch, bytes(size)
    numbers = itertools.count(1)
    found = Appends()
    end = time.perf_counter() + seconds

    def work() -> None:
        while time.perf_counter() < end:
            number = next(numbers)
            began = time.perf_counter()
            request = AppendEntry(epoch, number, data)
            while not isinstance(answer := _answer(log, request), Appended):
                assert isinstance(answer, Misplaced), f"the claim stands: {answer}"
                if answer.data:
                    break  # an attempt that was not answered was carried out
                found.overtook += 1
            found.times_s.append(time.perf_counter() - began)

    with ThreadPoolExecutor(at_a_time) as threads:
        for each in [threads.submit(work) for _ in range(at_a_time)]:
            each.result()
    return found


def _answer(log: SharedLog, request: LogRequest) -> LogAnswer:
    """What the log answers in the end: etcd that has just started may not do so at once."""
    while True:
        with suppress(UnansweredError):
            return log.ask(request)
