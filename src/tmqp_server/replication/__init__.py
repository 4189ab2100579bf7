"""Replication: decides who leads a group of servers, and what each may do; no I/O."""

from __future__ import annotations

__all__: list[str] = []
