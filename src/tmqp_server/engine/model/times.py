"""Special values of times: never and immediately.

The engine counts time in monotonic seconds, and a restored time may be before the clock's start:
negative, or zero.  So "never" and "immediately" are infinities, which compare correctly and are not
readings of any clock.
"""

from __future__ import annotations

from typing import Final

__all__ = ["AT_ONCE", "NEVER"]

#: Later than any time.
NEVER: Final = float("inf")
#: Earlier than any time.
AT_ONCE: Final = float("-inf")
