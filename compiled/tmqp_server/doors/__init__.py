"""Doors: how clients of each protocol reach the broker, a folder each; all of them are pure."""

from __future__ import annotations

__all__: list[str] = []
