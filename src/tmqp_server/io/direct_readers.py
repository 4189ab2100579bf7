"""The readers that an event loop calls directly when it polls its sockets.

Compiled, because it runs for each chunk; ``direct_loop.py`` describes how asyncio uses it.
"""

from __future__ import annotations

import math
import select
import selectors
import time
from collections.abc import Callable
from typing import Final, final

from tmqp_server.shell.pulse import QUICK_S, Pulse, SlowTurn

__all__ = ["IN", "OUT", "DirectReaders"]

# As the kernel numbers them; only a system that has them comes to use them.
IN: Final[int] = getattr(select, "EPOLLIN", 1)
OUT: Final[int] = getattr(select, "EPOLLOUT", 4)
_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE


@final
class DirectReaders:
    """Waits for sockets, and calls the readers of those that have something to read.

    :param poll: polls the sockets, as ``select.epoll.poll`` does.
    :param on_fault: gets the exception of a reader; the other readers are still called.

    ``readers``: by file descriptor.  ``rounds``: called before and after the readers of one poll,
    if there are several.  ``asked``: the loop has something to do since the last :meth:`wait`
    began, so it must return.  ``pulse``: measures turns, and ``on_slow`` is called for those that
    take too long.  ``rung``: whether other threads have passed on functions; then ``hear`` is
    called.
    """

    __slots__ = (
        "_on_fault",
        "_poll",
        "asked",
        "hear",
        "on_slow",
        "pulse",
        "readers",
        "rounds",
        "rung",
    )

    def __init__(
        self,
        poll: Callable[[float, int], list[tuple[int, int]]],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._poll = poll
        self._on_fault = on_fault
        self.readers: dict[int, Callable[[], None]] = {}
        self.rounds: dict[Callable[[], None], Callable[[], None]] = {}
        self.asked = False
        self.pulse: Pulse | None = None
        self.on_slow: Callable[[SlowTurn], None] | None = None
        self.rung = False
        self.hear: Callable[[], None] = _nothing

    def wait(self, timeout: float | None, most: int) -> list[tuple[int, int]]:
        """Wait, and call readers, until there is something for asyncio.

        :param timeout: the longest time to wait, in seconds; None for no limit.
        :param most: the most sockets that one poll reports.
        :returns: for asyncio, file descriptors and what they are ready for (``EVENT_READ``,
            ``EVENT_WRITE``, whether or not that is watched).
        """
        self.asked = False
        # The call itself rounds up to milliseconds, so that nothing is woken just before it is due.
        wait_s = -1.0 if timeout is None else max(timeout, 0.0)
        now = time.monotonic()
        end = math.inf if timeout is None else now + wait_s
        pulse = self.pulse
        readers = self.readers
        ready: list[tuple[int, int]] = []
        while True:
            if pulse is not None:
                took_s = now - pulse.woke
                if took_s <= QUICK_S:
                    pulse.quick += 1
                    pulse.quick_s += took_s
                else:
                    self._end_turn(pulse, now)
                    if self.asked:
                        wait_s = 0.0  # by who was notified of a slow turn
            found = self._poll(wait_s, most)
            if pulse is not None:
                pulse.wake(time.monotonic())
            rounds = list(self.rounds.items()) if len(found) > 1 else []
            for begin, _ in rounds:
                begin()
            for fd, event in found:
                # Each is looked up when its turn comes: one before it may have taken it away.
                reader = readers.get(fd)
                if reader is None:
                    wanted = _WRITE if event & ~IN else 0
                    ready.append((fd, wanted | _READ if event & ~OUT else wanted))
                    continue
                if event & ~OUT:
                    try:
                        reader()
                    except Exception as error:  # noqa: BLE001 - as with asyncio the loop continues
                        self._on_fault(error)
                if event != IN:
                    ready.append((fd, _WRITE))
            for _, finish in rounds:
                try:
                    finish()
                except Exception as error:  # noqa: BLE001 - as above
                    self._on_fault(error)
            if self.rung:
                self.hear()
            if ready or self.asked:
                return ready
            now = time.monotonic()
            if timeout is not None:
                wait_s = end - now
                if wait_s <= 0:
                    return ready

    def _end_turn(self, pulse: Pulse, now: float) -> None:
        slow = pulse.end(now)
        if slow is not None and self.on_slow is not None:
            try:
                self.on_slow(slow)
            except Exception as error:  # noqa: BLE001 - as above
                self._on_fault(error)


def _nothing() -> None:
    """Do nothing: no thread passes on functions."""
