"""The HTTP interfaces of NSQ, of nsqd and of nsqlookupd; see the modules."""

from __future__ import annotations

__all__: list[str] = []
