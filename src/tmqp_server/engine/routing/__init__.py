"""Routers and their bindings, custom routers, and calls of HTTP bindings."""

from __future__ import annotations

__all__: list[str] = []
