"""Throttr: its binary protocol for both roles, in the dialects 7.1 and 7.3.

A server uses :class:`RequestDecoder` and the functions of ``replies``; a client
:class:`ClientConnection`, which writes a :class:`Request` and reads what comes back.
"""

from __future__ import annotations

from tmqp_wires.throttr.client import ClientConnection, Push, Reply
from tmqp_wires.throttr.requests import Request, RequestDecoder, Violation

__all__ = ["ClientConnection", "Push", "Reply", "Request", "RequestDecoder", "Violation"]
