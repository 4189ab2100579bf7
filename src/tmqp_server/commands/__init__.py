"""The further commands of tmqp-server: for data directories, configurations, and keys."""

from __future__ import annotations

__all__: list[str] = []
