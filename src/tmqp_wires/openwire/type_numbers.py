"""The numbers by which OpenWire tells one command from another.

Those of messages stand with the message, in :mod:`tmqp_wires.openwire.messages`.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BROKER_INFO",
    "CONNECTION_CONTROL",
    "CONNECTION_ERROR",
    "CONNECTION_INFO",
    "CONSUMER_CONTROL",
    "CONSUMER_INFO",
    "DESTINATION_INFO",
    "EXCEPTION_RESPONSE",
    "KEEP_ALIVE_INFO",
    "MESSAGE_ACK",
    "MESSAGE_DISPATCH",
    "MESSAGE_PULL",
    "PRODUCER_ACK",
    "PRODUCER_INFO",
    "REMOVE_INFO",
    "REMOVE_SUBSCRIPTION_INFO",
    "RESPONSE",
    "SESSION_INFO",
    "SHUTDOWN_INFO",
    "TRANSACTION_INFO",
]

BROKER_INFO: Final = 2
CONNECTION_INFO: Final = 3
SESSION_INFO: Final = 4
CONSUMER_INFO: Final = 5
PRODUCER_INFO: Final = 6
TRANSACTION_INFO: Final = 7
DESTINATION_INFO: Final = 8
REMOVE_SUBSCRIPTION_INFO: Final = 9
KEEP_ALIVE_INFO: Final = 10
SHUTDOWN_INFO: Final = 11
REMOVE_INFO: Final = 12
CONNECTION_ERROR: Final = 16
CONSUMER_CONTROL: Final = 17
CONNECTION_CONTROL: Final = 18
PRODUCER_ACK: Final = 19
MESSAGE_PULL: Final = 20
MESSAGE_DISPATCH: Final = 21
MESSAGE_ACK: Final = 22
RESPONSE: Final = 30
EXCEPTION_RESPONSE: Final = 31
