"""Transactions: what is staged, the commit, and what was committed before."""

from __future__ import annotations

__all__: list[str] = []
