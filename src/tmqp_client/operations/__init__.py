"""The operations of a client, one module for each subject; all are methods of ``Client``."""

from __future__ import annotations

__all__: list[str] = []
