"""nsqadmin: the web page that shows and manages NSQ, and the HTTP API beneath it (N149 to N157)."""

from __future__ import annotations

__all__: list[str] = []
