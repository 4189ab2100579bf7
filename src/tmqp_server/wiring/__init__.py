"""The server put together: names the adapters, makes the broker, starts and stops it all."""

from __future__ import annotations

__all__: list[str] = []
