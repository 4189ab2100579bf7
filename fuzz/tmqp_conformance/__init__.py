"""Certifies servers and clients: compares their answers with the answers that the protocol allows.

It uses only the public interfaces of ``tmqp`` and ``tmqp.testing``.
"""

from __future__ import annotations

__all__: list[str] = []
