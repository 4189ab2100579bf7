"""The client without I/O: what it asked, what it joined, what has arrived; no socket, no clock."""

from __future__ import annotations

__all__: list[str] = []
