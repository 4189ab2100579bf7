"""Shared code of several wire formats."""

from __future__ import annotations

__all__: list[str] = []
