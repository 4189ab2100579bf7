"""nsqlookupd: which nsqd has which topics and channels; see the modules."""

from __future__ import annotations

__all__: list[str] = []
