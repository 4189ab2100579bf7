"""Throttr: its binary protocol for both roles, in the dialects 7.1 and 7.3.

A server uses :class:`RequestDecoder` and the functions of ``replies``; a client uses
:class:`ClientConnection`, which encodes a :class:`Request` and decodes replies and pushes.
"""

from __future__ import annotations

from tmqp_wires.throttr.client import ClientConnection, Push, Reply
from tmqp_wires.throttr.requests import Request, RequestDecoder, Violation

__all__ = ["ClientConnection", "Push", "Reply", "Request", "RequestDecoder", "Violation"]
