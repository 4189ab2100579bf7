"""NSQ's TCP protocol: turns bytes into commands and effects into bytes (docs/doors/nsq.md).

Numbers such as N78 are facts about the original, listed there.
"""

from __future__ import annotations

__all__: list[str] = []
