"""Scripts that make parts of the documentation from the code; run as ``python -m tools.NAME``."""

from __future__ import annotations

__all__: list[str] = []
