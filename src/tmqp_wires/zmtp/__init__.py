"""ZMTP, the protocol of ZeroMQ sockets: versions 3.1, 3.0 and 2.0, for both roles.

:class:`ZmtpConnection` is one connection of a socket; ``frames`` has the form of messages.
"""

from __future__ import annotations

from tmqp_wires.zmtp.config import ZmtpConfig
from tmqp_wires.zmtp.connection import ZmtpConnection

__all__ = ["ZmtpConfig", "ZmtpConnection"]
