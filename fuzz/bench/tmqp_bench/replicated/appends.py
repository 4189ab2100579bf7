"""Appends to the log of a group alone: what it would bring to have several of them out at a time.

A leader has one append out, and gathers the next one meanwhile.  Here several threads append one
entry after the other.  One that overtakes the entry before it is refused, because the log takes no
number but the next one, and is asked again: so the order stands, and what is lost is time.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tmqp_server.storage.log import Appended, AppendEntry, Claim, Led, Misplaced, SharedLog

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
    led = log.ask(Claim("bench", "tmq://bench", "bench", _LEASE_S))
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
            while not isinstance(answer := log.ask(AppendEntry(epoch, number, data)), Appended):
                assert isinstance(answer, Misplaced), f"the claim stands: {answer}"
                found.overtook += 1
            found.times_s.append(time.perf_counter() - began)

    with ThreadPoolExecutor(at_a_time) as threads:
        for each in [threads.submit(work) for _ in range(at_a_time)]:
            each.result()
    return found
