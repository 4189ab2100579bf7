"""Doors: how clients of one protocol reach the broker.  Each is a folder of its own; all are pure."""

from __future__ import annotations

__all__: list[str] = []
