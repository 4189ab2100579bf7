"""The door of Throttr: counters and buffers with a time to live, and channels."""

from __future__ import annotations

__all__: list[str] = []
