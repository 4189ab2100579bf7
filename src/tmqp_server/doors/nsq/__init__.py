"""NSQ's TCP protocol: bytes to commands and effects to bytes (docs/doors/nsq.md).

Numbers such as N78 are facts about the original, listed there.
"""

from __future__ import annotations

__all__: list[str] = []
