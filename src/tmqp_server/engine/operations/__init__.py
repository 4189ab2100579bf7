"""The operations of clients on channels, queues and the server, and questions about them."""

from __future__ import annotations

__all__: list[str] = []
