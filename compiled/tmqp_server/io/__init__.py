"""The shell of the server: sockets, the clock and the tasks; the only place that knows anyio."""

from __future__ import annotations

__all__: list[str] = []
