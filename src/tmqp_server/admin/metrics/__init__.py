"""The metrics: which there are, how they are collected, and how they are written."""

from __future__ import annotations

__all__: list[str] = []
