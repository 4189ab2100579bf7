"""The pack of OpenWire, versions 10 to 12 in loose encoding.

OpenWire has no standard: the cases ask for what clients of ActiveMQ rely on, by the public
description of the wire and by JMS 1.1.  They ask for no encoding options; a server that insists on
tight encoding is no server for them.
"""

from __future__ import annotations

from typing import Final

from tmqp_conformance.packs.openwire import connecting, consuming
from tmqp_conformance.packs.openwire.ear import OpenwireEar
from tmqp_conformance.packs.openwire.facts import FACTS
from tmqp_conformance.packs.openwire.grammar import OpenwireGrammar
from tmqp_conformance.packs.pack import Pack

__all__ = ["PACK"]

PACK: Final = Pack(
    name="openwire",
    title="OpenWire (10 to 12, loose encoding)",
    page="docs/doors/openwire.md",
    ears={"": OpenwireEar},
    grammars={"": OpenwireGrammar()},
    facts=FACTS,
    cases=(*connecting.CASES, *consuming.CASES),
    probe=connecting.PROBE,
    setting=(
        "Queues and topics must be made when they are first used, and clients are let in without"
        " user name and password."
    ),
)
