"""The cluster: what this server tells its masters, and what it takes from its slaves; all pure."""

from __future__ import annotations

__all__: list[str] = []
