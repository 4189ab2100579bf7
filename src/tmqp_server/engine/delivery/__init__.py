"""The way of a message from its push to its settlement."""

from __future__ import annotations

__all__: list[str] = []
