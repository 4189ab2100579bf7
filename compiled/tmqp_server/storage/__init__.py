"""What keeps messages and topology through a restart: the port, the record format, the adapters."""

from __future__ import annotations

__all__: list[str] = []
