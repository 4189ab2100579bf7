"""Tells lookupds which topics and channels are here; see the modules."""

from __future__ import annotations

__all__: list[str] = []
