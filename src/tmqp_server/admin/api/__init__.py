"""The HTTP API for operators: one table of operations, and what carries them out."""

from __future__ import annotations

__all__: list[str] = []
