"""Who may connect and who may do what: rights, roles, tokens, hooks and the gate."""

from __future__ import annotations

__all__: list[str] = []
