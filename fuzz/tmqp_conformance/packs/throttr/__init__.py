"""The pack of Throttr: its binary protocol with values of two bytes, in the dialects 7.1 and 7.3.

The cases ask for what its clients rely on.  Where the document and its servers contradict each
other, they ask for what clients read; where servers lose or mix up requests, a case says so in its
reason.
"""

from __future__ import annotations

from typing import Final

from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.throttr.cases import CASES, PROBE
from tmqp_conformance.packs.throttr.facts import FACTS
from tmqp_conformance.packs.throttr.grammar import ThrottrGrammar
from tmqp_conformance.packs.throttr.words import NEWER, ThrottrEar
from tmqp_wires.throttr.words import DIALECT_71, DIALECT_73

__all__ = ["PACK"]

PACK: Final = Pack(
    name="throttr",
    title="Throttr (7.1 and 7.3)",
    page="docs/doors/throttr.md",
    ears={"": lambda: ThrottrEar(DIALECT_71), NEWER: lambda: ThrottrEar(DIALECT_73)},
    grammars={"": ThrottrGrammar(DIALECT_71), NEWER: ThrottrGrammar(DIALECT_73)},
    facts=FACTS,
    cases=CASES,
    probe=PROBE,
    setting=(
        "Values must have two bytes.  The address speaks the dialect 7.1, the one named"
        f" {NEWER} the dialect 7.3."
    ),
)
