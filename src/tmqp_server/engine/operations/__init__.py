"""The operations of clients on channels, queues and the server, and requests for information."""

from __future__ import annotations

__all__: list[str] = []
