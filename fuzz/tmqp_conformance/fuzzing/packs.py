"""The wire fuzzer for packs: damages what the cases of a pack say, at one server address each.

A server may answer what it likes, but it must live, serve others, send nothing that its clients
cannot read, and close where the pack knows that the protocol is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tmqp.testing import Seeded
from tmqp.testing.conformance import Case, Patience, Stage, UnreachableError, Verdict, play
from tmqp.testing.conformance.lines import Log
from tmqp.testing.conformance.patterns import Names
from tmqp.testing.conformance.steps import Open, Say
from tmqp_conformance.packs.pack import Pack

__all__ = ["PackFinding", "PackFuzzer"]

#: What a number of four bytes is replaced by: bounds of lengths, signed and not.
_NUMBERS: Final = (0, 1, 2, 255, 65_536, 1_048_576, 1_048_577, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_TEXTS: Final = (b"\n", b"\r\n", b" ", b":", b"\0", b"\xff", b"$", b"{", b"-1", b"9" * 20, b"#")


@dataclass(frozen=True, slots=True)
class PackFinding:
    """Something that a server must not do, and what was said to it on one connection."""

    kind: str
    message: str
    place: str
    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Talk:
    """What a case says on one line, which another case's line can be mixed with."""

    case: Case
    step: Open
    pieces: tuple[bytes, ...]


class PackFuzzer:
    """Fuzzes a server of a pack.

    :param places: the addresses of the stage's server.
    :param breaks: whether a client that says this at the first address has broken the protocol,
        so that its connection must end; None where nobody knows.
    """

    def __init__(
        self,
        pack: Pack,
        stage: Stage,
        seed: int,
        patience: Patience,
        places: tuple[str, ...] = ("",),
        breaks: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.played = 0
        self.mutations: Counter[str] = Counter()
        self.signatures: set[tuple[str, ...]] = set()
        self._pack = pack
        self._stage = stage
        self._draw = Seeded(seed)
        self._patience = patience
        self._breaks = breaks
        self._talks = [talk for talk in _talks(pack) if talk.step.at in places]

    def run(self, conversations: int) -> Iterator[PackFinding]:
        """Play so many conversations; yields what is found."""
        for _ in range(conversations):
            talk = self._talks[self._draw.below(len(self._talks))]
            finding = self.play(talk.case, talk.step, self._mutated(talk))
            if finding is not None:
                yield finding

    def play(self, case: Case, step: Open, pieces: tuple[bytes, ...]) -> PackFinding | None:
        """Say these pieces on one connection; returns what is wrong, if anything is."""
        self.played += 1
        wrong = ("", "")
        wire = self._stage.open(step.line, case)
        try:
            line = self._pack.speaks(step, case, wire, Log(self._stage))
            for piece in pieces:
                line.send(piece)
            broken = self._breaks is not None and not step.at and self._breaks(b"".join(pieces))
            wait_s = self._patience.close if broken else self._patience.quiet
            while line.receive(wait_s):
                pass
            kinds = [str(each).partition(" ")[0] for each in line.seen[:8]]
            self.signatures.add((step.at, "ended" if line.ended else "open", *kinds))
            if line.complaint and not line.complaint.startswith("the stream ended"):
                wrong = ("undecodable", line.complaint)
            elif broken and not line.ended:
                wrong = ("open", "the server did not close, although the protocol was broken")
        finally:
            wire.close("end")
        return self._found(wrong, step.at, pieces)

    def _found(
        self, wrong: tuple[str, str], place: str, pieces: tuple[bytes, ...]
    ) -> PackFinding | None:
        """What there is to tell; that nobody is served any more explains all else."""
        suffix = f"f{self.played}"
        speaks = self._pack.speaks
        try:
            probe = play(self._pack.probe, self._stage, suffix, self._patience, speaks=speaks)
            lives, why = probe.verdict is Verdict.PASS, probe.message
        except UnreachableError as error:
            lives, why = False, str(error)
        if not lives:
            return PackFinding("crash", f"a new client is not served: {why}", place, pieces)
        return PackFinding(*wrong, place, pieces) if wrong[0] else None

    def _mutated(self, talk: _Talk) -> tuple[bytes, ...]:
        """The pieces with one to three mutations."""
        pieces = list(talk.pieces)
        for _ in range(1 + self._draw.below(3)):
            name, change = _MUTATIONS[self._draw.below(len(_MUTATIONS))]
            self.mutations[name] += 1
            place = self._draw.below(len(pieces))
            if name == "splice":
                others = [each for each in self._talks if each.step.at == talk.step.at]
                other = others[self._draw.below(len(others))].pieces
                pieces.insert(place + 1, other[self._draw.below(len(other))])
            else:
                pieces[place] = change(self._draw, pieces[place])
        return tuple(pieces)


def _talks(pack: Pack) -> Iterator[_Talk]:
    """What the cases of a pack say, line by line."""
    for number, case in enumerate(pack.cases):
        names = Names(f"z{number}")
        for step in case.steps:
            if not isinstance(step, Open):
                continue
            said = [each for each in case.steps if isinstance(each, Say) and each.line == step.line]
            pieces = [
                item if isinstance(item, bytes) else item.encode(names, "m")
                for each in said
                for item in each.items
            ]
            if pieces and sum(map(len, pieces)) < 10_000:
                yield _Talk(case, step, tuple(pieces))


def _cut(draw: Seeded, data: bytes) -> bytes:
    return data[: draw.below(len(data) + 1)]


def _repeat(draw: Seeded, data: bytes) -> bytes:
    return data * (2 + draw.below(3))


def _flip(draw: Seeded, data: bytes) -> bytes:
    if not data:
        return data
    place = draw.below(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draw.below(8))]) + data[place + 1 :]


def _number(draw: Seeded, data: bytes) -> bytes:
    place = draw.below(max(1, len(data) - 3))
    number = _NUMBERS[draw.below(len(_NUMBERS))]
    return data[:place] + number.to_bytes(4, "big") + data[place + 4 :]


def _insert(draw: Seeded, data: bytes) -> bytes:
    place = draw.below(len(data) + 1)
    return data[:place] + _TEXTS[draw.below(len(_TEXTS))] + data[place:]


def _noise(draw: Seeded, data: bytes) -> bytes:
    return data + draw.some_bytes(draw.below(60))


_MUTATIONS: Final[tuple[tuple[str, Callable[[Seeded, bytes], bytes]], ...]] = (
    ("cut", _cut),
    ("repeat", _repeat),
    ("flip", _flip),
    ("number", _number),
    ("insert", _insert),
    ("noise", _noise),
    ("splice", _noise),
)
