"""The HTTP interfaces of nsqd and nsqlookupd; see the modules."""

from __future__ import annotations

__all__: list[str] = []
