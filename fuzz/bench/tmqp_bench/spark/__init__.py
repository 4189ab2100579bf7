"""The comparison of queues in Spark with Spark's own Kafka connector."""

from __future__ import annotations

__all__: list[str] = []
