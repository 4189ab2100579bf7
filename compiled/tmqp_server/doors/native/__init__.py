"""The native door: TMQP/2.0 itself."""

from __future__ import annotations

__all__: list[str] = []
