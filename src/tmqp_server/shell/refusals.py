"""Decides which refused clients are logged.

A client with an old token tries again for ever.  At most ten lines a minute are logged about each
address; a later line says how many were left out.
"""

from __future__ import annotations

from typing import Final, final

__all__ = ["Refusals"]

#: The most lines about one address within a number of seconds.
_LINES: Final = 10
_WINDOW_S: Final = 60.0
#: Addresses that are remembered; the oldest is forgotten.
_ADDRESSES: Final = 1_024


@final
class _Window:
    """The refusals for one address since ``began_s``."""

    __slots__ = ("began_s", "lines", "suppressed")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.lines = 0
        self.suppressed = 0


@final
class Refusals:
    """Limits the log lines about each address."""

    def __init__(self) -> None:
        self._windows: dict[str, _Window] = {}
        #: Lines that were left out in all.
        self.suppressed = 0

    def note(self, host: str, now: float) -> int:
        """Count a refusal of an address.

        :returns: -1 if it is not logged; otherwise how many were suppressed before this one.
        """
        window = self._windows.get(host)
        suppressed = 0
        if window is None or now - window.began_s >= _WINDOW_S:
            if window is not None:
                suppressed = window.suppressed
                del self._windows[host]
            window = self._windows[host] = _Window(now)
            if len(self._windows) > _ADDRESSES:
                del self._windows[next(iter(self._windows))]
        if window.lines >= _LINES:
            window.suppressed += 1
            self.suppressed += 1
            return -1
        window.lines += 1
        return suppressed
