"""The comparison of client libraries: ours and others', each with its own server."""

from __future__ import annotations

__all__: list[str] = []
