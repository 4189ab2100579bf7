"""The client's state without I/O: requests, joined channels, received messages; no socket, no
clock.
"""

from __future__ import annotations

__all__: list[str] = []
