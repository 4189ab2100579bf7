"""Readers of kept messages: offsets, ranges, cursors, groups and watches."""

from __future__ import annotations

__all__: list[str] = []
