"""Fills a broker's memory with one kind of command, and says what that took.

As a program: each case in a process of its own that begins where this one is, as many at a time as
there are processors; prints a line of JSON for each.  A case prepares a broker and then gives
commands without end, until the broker refuses one or there were enough of them.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tmqp_server.engine.filling_cases import CASES, Some, kinds
from tests.tmqp_server.engine.filling_parts import (
    ME,
    YEARS_MS,
)
from tmqp_server.engine import commands as c
from tmqp_server.engine import events
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.effects import Effect, EndPull, Refuse, Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import (
    BrokerOptions,
)

__all__ = ["CASES", "MOST_BYTES", "figures", "kinds"]

#: The limit that is filled, and the most commands that are given.
MOST_BYTES: Final = 16 * 1_048_576
_MOST_COMMANDS: Final = 60_000
_FEW_COMMANDS: Final = 10_000
_MANY: Final = 1 << 40
_LIMITS: Final = EngineLimits(
    max_sessions=_MANY,
    max_delay_ms=YEARS_MS,
    max_deferred_per_queue=_MANY,
    max_channels=_MANY,
    max_feeds=_MANY,
    max_queues_per_channel=65_536,
    max_subscriptions_per_session=_MANY,
    max_branches_per_session=_MANY,
    max_routers=_MANY,
    max_bindings_per_router=_MANY,
    max_event_subscriptions_per_session=_MANY,
    max_pulls_per_session=_MANY,
    max_cursors_per_queue=_MANY,
    max_held_reads=_MANY,
    max_held_reads_per_session=_MANY,
    max_reads=_MANY,
    max_reads_per_session=_MANY,
    max_transactions=_MANY,
    max_questions_per_session=_MANY,
    max_transaction_marks=_MANY,
    max_in_flight_per_session=_MANY,
    max_transaction_bytes=MOST_BYTES,
    max_transactions_bytes=MOST_BYTES,
    # Nobody puts anything aside here.
    max_transactions_memory_bytes=8 * MOST_BYTES,
    max_total_bytes=MOST_BYTES,
)


class _Filled:
    """A broker and a storage that answers at once; ``refused`` is what did not fit."""

    def __init__(self) -> None:
        self.broker = Broker(_LIMITS, BrokerOptions(storage=True, events=events.NO_EVENTS))
        self.now = 1.0
        self.refused = ""
        for number in (ME, 2):
            self.give(c.Connect(number, None, f"client {number}", "client"))

    def is_refused(self) -> bool:
        """Whether something did not fit."""
        return bool(self.refused)

    def give(self, command: c.Command) -> None:
        """Carry out a command and all that follows at once."""
        self._take(self.broker.step(command, self.now))
        while (due := self.broker.next_deadline()) is not None and due <= self.now:
            self._take(self.broker.on_deadline(self.now))

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            ticket = getattr(effect, "ticket", 0)
            if ticket:
                self.give(c.Synced(ticket, True))
            elif isinstance(effect, (Reply, Refuse)) and effect.code in {482, 503}:
                self.refused = str(effect.code)
            elif isinstance(effect, Reply) and effect.code == 404 and effect.request == "publish":
                self.refused = str(effect.code)  # nobody took it
            elif isinstance(effect, EndPull) and effect.reason == "Unacceptable":
                self.refused = effect.reason

    def books(self) -> int:
        """What the broker says that it takes."""
        return self.broker._core.total_bytes


def _commands(some: Some) -> Iterator[c.Command]:
    if isinstance(some, c.Command):
        yield some
    else:
        yield from some


def _resident_bytes() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    _size, resident, of_files, *_rest = Path("/proc/self/statm").read_text().split()
    # Without the pages of files: a compiled module is one, and is read in as it is used.
    return (int(resident) - int(of_files)) * os.sysconf("SC_PAGE_SIZE")


def figures(case: str) -> dict[str, object]:
    """Fill a broker; how many commands that took, what the books say and what is resident."""
    prepare, make = CASES[case]
    resident = _resident_bytes()
    filled = _Filled()
    for command in prepare:
        filled.give(command)
    assert not filled.refused, f"{case}: cannot be prepared: {filled.refused}"
    before = filled.books()
    count = 0
    for number in itertools.count():
        for command in _commands(make(number)):
            filled.give(command)
        count += 1
        if filled.is_refused() or count >= _MOST_COMMANDS:
            break
        if count >= _FEW_COMMANDS and filled.books() - before < MOST_BYTES // 100:
            break  # it creates nothing that stays
    return {
        "case": case,
        "commands": count,
        "refused": filled.refused,
        "prepared": before,
        "books": filled.books(),
        "resident": _resident_bytes() - resident,
    }


def _main() -> None:
    running = 0
    for case in CASES:
        if running == (os.cpu_count() or 1):
            os.wait()
            running -= 1
        running += 1
        child = os.fork()
        if child == 0:
            try:
                # One write for a line: several processes share the pipe.
                os.write(1, json.dumps(figures(case)).encode() + b"\n")
            finally:
                os._exit(0)
    for _ in range(running):
        os.wait()


if __name__ == "__main__":
    _main()
    sys.exit(0)
