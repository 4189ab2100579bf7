"""A consumer of NSQ topics for nsq_to_file and nsq_to_http, with go-nsq's behaviour (N167)."""

from __future__ import annotations

__all__: list[str] = []
