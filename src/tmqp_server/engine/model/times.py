"""Moments that are no moment: what the engine stores where a time is absent.

The engine counts time in monotonic seconds, and a restored time may lie before the clock's own
start: negative, or zero.  So "never" and "at once" are infinities, which compare as they mean and
can be no reading of any clock.
"""

from __future__ import annotations

from typing import Final

__all__ = ["AT_ONCE", "NEVER"]

#: Later than any time.
NEVER: Final = float("inf")
#: Earlier than any time.
AT_ONCE: Final = float("-inf")
