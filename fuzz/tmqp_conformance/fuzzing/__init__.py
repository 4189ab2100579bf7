"""Fuzzing of servers: of the wire (is it robust?) and of the model (is it right?)."""

from __future__ import annotations

__all__: list[str] = []
