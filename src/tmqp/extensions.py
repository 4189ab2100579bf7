"""Owns what we add to the protocol: operations under numbers that neither source uses.

The specification's numbers end at 302, the original's at 663 (F19); ours stand between 700 and 799.
A server that does not know them answers 400 (ours) or nothing (the original).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["HEADER_ROUTER_ENABLED", "OP_SET_ROUTER_ENABLED", "ExtensionOperation"]

OP_SET_ROUTER_ENABLED: Final = 701

#: ``1`` to enable the router that the target names, ``0`` to disable it.
HEADER_ROUTER_ENABLED: Final = "Router-Enabled"


class ExtensionOperation(IntEnum):
    """Content types of Server messages from a client that only this project serves."""

    SET_ROUTER_ENABLED = OP_SET_ROUTER_ENABLED
