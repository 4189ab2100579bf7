"""goMS: JSON objects over TCP, one per line, in both dialects and for both roles.

A server uses :class:`ObjectDecoder` and the answers of ``codec``; a client :class:`ObjectDecoder`
with ``plain`` set, and the requests of ``codec``.
"""

from __future__ import annotations

from tmqp_wires.goms.codec import Dialect, ObjectDecoder

__all__ = ["Dialect", "ObjectDecoder"]
