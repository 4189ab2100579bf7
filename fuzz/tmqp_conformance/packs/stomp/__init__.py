"""The pack of STOMP 1.0, 1.1 and 1.2.

The cases ask for what the specification says.  What it leaves to servers, the meaning of
destinations, is as most of them have it: queues and topics.
"""

from __future__ import annotations

from typing import Final

from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.stomp import connecting, consuming, framing
from tmqp_conformance.packs.stomp.facts import FACTS
from tmqp_conformance.packs.stomp.grammar import StompGrammar
from tmqp_conformance.packs.stomp.words import StompEar

__all__ = ["PACK"]

PACK: Final = Pack(
    name="stomp",
    title="STOMP (1.0, 1.1 and 1.2)",
    page="docs/doors/stomp.md",
    ears={"": StompEar},
    grammars={"": StompGrammar()},
    facts=FACTS,
    cases=(*connecting.CASES, *framing.CASES, *consuming.CASES),
    probe=connecting.PROBE,
    setting=(
        "A destination /queue/N must be a queue and /topic/N a topic, made when they are first"
        " used, and clients are let in without login."
    ),
)
