"""Builds the server: chooses the adapters, makes the broker, and starts and stops everything."""

from __future__ import annotations

__all__: list[str] = []
