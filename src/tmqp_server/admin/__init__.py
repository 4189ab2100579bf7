"""What operators need: metrics and probes, over HTTP."""

from __future__ import annotations

__all__: list[str] = []
