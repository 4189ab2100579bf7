"""The reference broker of TMQP/2.0: a pure engine, doors for its clients, a thin anyio shell."""

from __future__ import annotations

__all__: list[str] = []
