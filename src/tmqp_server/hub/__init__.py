"""Where doors and broker meet: commands in, effects out, and what a store brings back."""

from __future__ import annotations

__all__: list[str] = []
