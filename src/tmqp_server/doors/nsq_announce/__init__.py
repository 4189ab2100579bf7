"""Announces this server's topics and channels to lookupds; see the modules."""

from __future__ import annotations

__all__: list[str] = []
