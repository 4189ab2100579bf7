"""A pack: the cases about another protocol, which a server offers at a separate door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tmqp.testing.conformance import Case, Wire
from tmqp.testing.conformance.lines import Log, Stream
from tmqp.testing.conformance.steps import Open
from tmqp_conformance.packs.grammar import PackGrammar
from tmqp_conformance.packs.units import Ear, EarStream

__all__ = ["Pack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """One pack.

    ``title`` is the protocol's name and version, ``page`` the page about its door.  ``ears`` has a
    function for each of the server's addresses that creates an ear; ``""`` is the main address.
    ``grammars`` are the languages of clients at these addresses, for the fuzzer.  ``facts`` are the
    rules that the cases are about.  ``probe`` passes with every server that runs.  ``setting``
    describes the required configuration of the server.
    """

    name: str
    title: str
    page: str
    ears: Mapping[str, Callable[[], Ear]]
    grammars: Mapping[str, PackGrammar]
    facts: Mapping[str, str]
    cases: tuple[Case, ...]
    probe: Case
    setting: str = ""

    @property
    def places(self) -> list[str]:
        """The further addresses of such a server."""
        return [place for place in self.ears if place]

    def speaks(self, step: Open, case: Case, wire: Wire, log: Log) -> Stream:
        """The line that a step opens (:data:`tmqp.testing.conformance.player.Speaks`)."""
        return EarStream(step.line, wire, log, self.ears[step.at]())
