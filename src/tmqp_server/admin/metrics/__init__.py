"""The metrics: their declarations, their collection, and their formats."""

from __future__ import annotations

__all__: list[str] = []
