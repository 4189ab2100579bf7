"""The console: a page for operators, and what serves it."""

from __future__ import annotations

__all__: list[str] = []
