"""Certifies TMQP servers: what they say is compared with what is known to be right.

It knows the protocol only through the public face of ``tmqp`` and ``tmqp.testing``.
"""

from __future__ import annotations

__all__: list[str] = []
