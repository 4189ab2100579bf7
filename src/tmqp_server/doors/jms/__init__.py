"""Shared code of the doors of ActiveMQ's protocols, STOMP and OpenWire."""

from __future__ import annotations

__all__: list[str] = []
