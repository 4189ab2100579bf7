"""The door of goMS: configured topics, broadcast, over TCP and UDP."""

from __future__ import annotations

__all__: list[str] = []
