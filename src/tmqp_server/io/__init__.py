"""The I/O of the server: sockets, the clock, tasks and threads."""

from __future__ import annotations

__all__: list[str] = []
