"""The conformance pack of OpenWire at ActiveMQ itself."""

from __future__ import annotations

from typing import Final

from tests.interop.openwire.talking import MARKS, activemq
from tmqp.address import Address
from tmqp.testing.conformance import Patience, Verdict, play
from tmqp_conformance.commands.packs import PackStage
from tmqp_conformance.packs import PACKS

pytestmark = MARKS

#: What it does otherwise, none of which the pack demands.
DIFFERS: Final = {
    "server.openwire.older-version": Verdict.INFORMATIONAL,  # it speaks version 1
    "server.openwire.encodings": Verdict.INFORMATIONAL,  # it has tight encoding
    "server.openwire.frame-limit": Verdict.INFORMATIONAL,  # it has no limit by default
    "server.openwire.first-command": Verdict.UNCLEAN,
    "server.openwire.connection-first": Verdict.FAIL,
    "server.openwire.unknown-type": Verdict.NON_STRICT,  # it closes and says nothing
}


def test_activemq_passes_what_the_pack_demands() -> None:
    pack = PACKS["openwire"]
    found = {}
    with activemq() as url:
        address = Address("127.0.0.1", int(url.rpartition(":")[2]))
        stage = PackStage({"": address})
        for number, case in enumerate(pack.cases):
            result = play(case, stage, f"a{number}x", Patience(), speaks=pack.speaks)
            if result.verdict is not Verdict.PASS:
                found[case.id] = result.verdict
    assert found == DIFFERS
