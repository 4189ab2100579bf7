"""OpenWire, versions 9 to 12 in loose encoding, for both roles.

A server uses :class:`ServerConnection`, a client :class:`ClientConnection`; their commands are in
``commands`` and ``messages``, whose parts are in ``data`` and ``ids``.
"""

from __future__ import annotations

from tmqp_wires.openwire.commands import Command
from tmqp_wires.openwire.connection import ClientConnection, Fault, ServerConnection
from tmqp_wires.openwire.messages import Message, MessageAck, MessageDispatch
from tmqp_wires.openwire.negotiation import WireFormat

__all__ = [
    "ClientConnection",
    "Command",
    "Fault",
    "Message",
    "MessageAck",
    "MessageDispatch",
    "ServerConnection",
    "WireFormat",
]
