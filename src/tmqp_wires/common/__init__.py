"""What several wire formats have in common."""

from __future__ import annotations

__all__: list[str] = []
