"""What the doors of ActiveMQ's protocols, STOMP and OpenWire, have in common."""

from __future__ import annotations

__all__: list[str] = []
