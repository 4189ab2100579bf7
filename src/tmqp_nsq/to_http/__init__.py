"""nsq_to_http: which address gets a message, and the requests (N164, N165)."""

from __future__ import annotations

__all__: list[str] = []
