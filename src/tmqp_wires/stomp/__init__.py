"""STOMP 1.0, 1.1 and 1.2, for both roles.

A server uses :class:`ServerConnection`, a client :class:`ClientConnection`; both use
:class:`FrameDecoder` and ``frames``.
"""

from __future__ import annotations

from tmqp_wires.stomp.codec import FrameDecoder
from tmqp_wires.stomp.connection import ClientConnection, ServerConnection
from tmqp_wires.stomp.frames import FrameLimits, StompFrame

__all__ = ["ClientConnection", "FrameDecoder", "FrameLimits", "ServerConnection", "StompFrame"]
