"""The door of STOMP: clients of versions 1.0, 1.1 and 1.2 reach queues and topics."""

from __future__ import annotations

__all__: list[str] = []
