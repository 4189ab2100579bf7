"""Transactions: staged messages, commits, and earlier commits."""

from __future__ import annotations

__all__: list[str] = []
