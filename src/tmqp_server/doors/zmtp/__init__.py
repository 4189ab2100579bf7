"""The door of ZeroMQ: sockets of every type reach queues, topics and services."""

from __future__ import annotations

__all__: list[str] = []
