"""The objects of the engine: queues, messages, sessions, channels, delivery handlers."""

from __future__ import annotations

__all__: list[str] = []
