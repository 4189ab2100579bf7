"""ZMTP, the protocol of ZeroMQ sockets: versions 3.1, 3.0 and 2.0, for both roles.

:class:`ZmtpConnection` is one connection of a socket; ``frames`` has the form of messages, and
``keys`` that of CURVE's keys.  The caller passes in the cryptography, such as that of ``sodium``,
which uses PyNaCl.
"""

from __future__ import annotations

from tmqp_wires.zmtp.config import ZmtpConfig
from tmqp_wires.zmtp.connection import ZmtpConnection
from tmqp_wires.zmtp.curve import CurveKeys

__all__ = ["CurveKeys", "ZmtpConfig", "ZmtpConnection"]
