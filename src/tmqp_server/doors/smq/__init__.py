"""The door of Simple MQ: plain lines, queues in round robin, acknowledgements by number."""

from __future__ import annotations

__all__: list[str] = []
