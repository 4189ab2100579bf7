"""Virtual topics: a queue ``Consumer.A.VirtualTopic.X`` gets the messages to ``VirtualTopic.X``."""

from __future__ import annotations

from typing import Final

__all__ = ["virtual_topic_of"]

_CONSUMER: Final = "Consumer"
_TOPIC: Final = "VirtualTopic"


def virtual_topic_of(queue: str) -> str:
    """The virtual topic of a queue, by the queue's name; empty for any other queue."""
    parts = queue.split(".", 3)
    if len(parts) == 4 and parts[0] == _CONSUMER and parts[1] and parts[2] == _TOPIC:
        return f"{_TOPIC}.{parts[3]}"
    return ""
