"""The client's sockets, tasks and waiting, on anyio."""

from __future__ import annotations

__all__: list[str] = []
