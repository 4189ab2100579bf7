"""Stores for messages and topology: the port, the record format, the adapters."""

from __future__ import annotations

__all__: list[str] = []
