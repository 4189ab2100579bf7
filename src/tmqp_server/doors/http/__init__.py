"""HTTP/1.1 and WebSocket: sessions without I/O, a route table, and queues over plain HTTP."""

from __future__ import annotations

__all__: list[str] = []
