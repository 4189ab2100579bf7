"""Servers of other protocols for the fuzzers: the conversations of a pack's cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

from tmqp.testing.conformance import Case, Patience, Stage, UnreachableError, Wire
from tmqp.testing.conformance.lines import Log, Stream
from tmqp.testing.conformance.patterns import Bind
from tmqp.testing.conformance.steps import Fence, Hear
from tmqp_conformance.fuzzing.mutate import Marks, seeds, with_names
from tmqp_conformance.grammar import Grammar, Piece
from tmqp_conformance.packs.grammar import ID_MARK, PackGrammar
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.units import Ear, EarStream, Expect, Unit
from tmqp_conformance.packs.words import dial, nothing, pack_case

__all__ = ["PackSubject"]

_LINE: Final = "fuzz"
_SIGNED: Final = 12
#: So many conversations have names of their own: these servers keep queues and topics for ever.
_NAMES: Final = 256


class _Line(EarStream):
    """A line that has a fence: a question that the grammar knows."""

    def __init__(self, wire: Wire, log: Log, ear: Ear, grammar: PackGrammar) -> None:
        super().__init__(_LINE, wire, log, ear)
        self.grammar = grammar
        self._fence = ""

    @property
    def fenced(self) -> bool:
        """See :class:`Stream`."""
        return bool(self._fence)

    def put_fence(self, fence: Fence) -> None:
        """See :class:`Stream`."""
        self._fence = f"{len(self._log.entries)}x"
        self.send(self.grammar.fence(self._fence), None, "fence")

    def take(self, data: bytes) -> None:
        """See :class:`Stream`."""
        before = len(self.seen)
        super().take(data)
        if self._fence and any(
            self.grammar.passes(unit, self._fence) for unit in self.seen[before:]
        ):
            self._fence = ""


class _Watch:
    """New clients, which must be served.

    :param make_line: opens a line.
    """

    def __init__(self, make_line: Callable[[], _Line], stage: Stage, patience: Patience) -> None:
        self._make_line = make_line
        self._stage = stage
        self._patience = patience

    def check(self) -> None:
        """See :class:`tmqp_conformance.grammar.Watch`."""
        line = self._make_line()
        try:
            line.send(line.grammar.greeting)
            line.put_fence(Fence.PING)
            deadline = self._stage.now() + self._patience.answer
            while line.fenced and line.receive(deadline - self._stage.now()):
                pass
            if line.fenced:
                raise UnreachableError("a new client was not answered")
        finally:
            line.release()

    def close(self) -> None:
        """See :class:`tmqp_conformance.grammar.Watch`."""


class PackSubject:
    """A server of a pack's protocol (:class:`tmqp_conformance.grammar.Subject`).

    :param places: the addresses that the server has and that are fuzzed.
    """

    def __init__(self, pack: Pack, places: tuple[str, ...]) -> None:
        self.pack = pack.name
        self._pack = pack
        self._grammars = {place: pack.grammars[place] for place in places}
        self.grammars: Mapping[str, Grammar] = self._grammars
        self._dials = {place: _dial(pack, place) for place in places}

    @cached_property
    def seeds(self) -> list[list[Piece]]:
        """See :class:`tmqp_conformance.grammar.Subject`: what is said at the given addresses."""
        found = seeds(self._pack.cases, _PackMarks)
        kept = [[piece for piece in each if piece.place in self._grammars] for each in found]
        return [each for each in kept if each]

    def open(self, stage: Stage, piece: Piece, log: Log) -> _Line:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        place = piece.place
        wire = stage.open(_LINE, self._dials[place])
        return _Line(wire, log, self._pack.ears[place](), self._grammars[place])

    def filled(self, piece: Piece, line: Stream, number: int, wait_s: float) -> bytes:
        """See :class:`tmqp_conformance.grammar.Subject`; old conversations may have these names."""
        data = piece.data
        if ID_MARK in data and isinstance(line, _Line):
            name = line.grammar.newest_id(line.seen)
            while not name and line.receive(wait_s):
                name = line.grammar.newest_id(line.seen)
            if name:
                data = data.replace(ID_MARK, name)
        return with_names(data, number % _NAMES)

    def watch(self, stage: Stage, number: int, patience: Patience) -> _Watch:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        piece = Piece(0, b"")
        return _Watch(lambda: self.open(stage, piece, Log(stage)), stage, patience)

    def words(self, line: Stream) -> list[str]:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        return [
            f"{unit.kind}:{unit.fields.get('code', '')}"
            for unit in line.seen[:_SIGNED]
            if isinstance(unit, Unit)
        ]

    def excused(self, line: Stream, conversation: Sequence[Piece]) -> bool:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        assert isinstance(line, _Line)
        if any(line.grammar.refuses(unit) for unit in line.seen):
            return True
        said: dict[tuple[int, str], bytes] = {}
        for piece in conversation:
            key = piece.line, piece.place
            said[key] = said.get(key, b"") + piece.data
        return any(self._grammars[place].ends_others(data) for (_, place), data in said.items())


def _dial(pack: Pack, place: str) -> Case:
    """The description of the fuzzer's connections, for the stage."""
    title = f"Is fuzzed at {place or 'its address'}"
    script = (dial(_LINE, place), nothing(_LINE))
    why = "A fuzzer opens lines as cases do."
    return pack_case(f"server.{pack.name}.fuzz", title, why, next(iter(pack.facts)), *script)


class _PackMarks(Marks):
    """Marks for a case; what it binds to an id has the mark of ids."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._bound = {
            value.word
            for step in case.steps
            if isinstance(step, Hear)
            for answer in step.answers
            for unit in answer.expected
            if isinstance(unit, Expect)
            for value in unit.fields.values()
            if isinstance(value, Bind)
        }

    def value(self, word: str) -> str:
        """See :class:`Marks`."""
        return ID_MARK.decode() if word in self._bound else super().value(word)
