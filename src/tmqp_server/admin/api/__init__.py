"""The HTTP API for operators: the table of its operations and the code that carries them out."""

from __future__ import annotations

__all__: list[str] = []
