"""Doors: the protocols of the server, one folder each, all without I/O."""

from __future__ import annotations

__all__: list[str] = []
