"""Joins the doors' sessions and the broker, and restores the contents of a store."""

from __future__ import annotations

__all__: list[str] = []
