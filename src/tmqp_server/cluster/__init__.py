"""The cluster: what this server sends to its masters and accepts from its slaves; no I/O."""

from __future__ import annotations

__all__: list[str] = []
