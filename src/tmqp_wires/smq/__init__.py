"""Simple MQ: the line protocol of the Simple Message Queue Server, for both roles.

A server uses :class:`LineDecoder` and ``message_line``; a client :class:`LineReader` and the other
lines of ``codec``.
"""

from __future__ import annotations

from tmqp_wires.smq.codec import LineDecoder, LineReader

__all__ = ["LineDecoder", "LineReader"]
