"""Questions to nsqd and nsqlookupd over HTTP, and the sums of their answers."""

from __future__ import annotations

__all__: list[str] = []
