"""What a client can ask of its server: one subject a module, all of them methods of ``Client``."""

from __future__ import annotations

__all__: list[str] = []
