"""Packs: cases about the other protocols that servers speak, a module for each protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tmqp_conformance.packs import goms, nsq, openwire, smq, stomp, throttr, zmtp
from tmqp_conformance.packs.pack import Pack

__all__ = ["PACKS"]

#: Every pack by its name.
PACKS: Final[Mapping[str, Pack]] = {
    pack.name: pack
    for pack in (
        *(nsq.PACK, smq.PACK, goms.PACK, throttr.PACK, zmtp.PACK, stomp.PACK),
        openwire.PACK,
    )
}
