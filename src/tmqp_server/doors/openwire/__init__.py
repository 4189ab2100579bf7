"""OpenWire, as clients of ActiveMQ speak it: programs written with JMS."""

from __future__ import annotations

__all__: list[str] = []
