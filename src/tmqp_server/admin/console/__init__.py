"""The console: a web page for operators, and the code that serves it."""

from __future__ import annotations

__all__: list[str] = []
