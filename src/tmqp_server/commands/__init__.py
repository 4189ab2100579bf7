"""Commands beside the server: about a data directory, others' configurations, and keys."""

from __future__ import annotations

__all__: list[str] = []
