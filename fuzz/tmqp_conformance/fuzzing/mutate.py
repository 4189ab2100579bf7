"""Conversations for the fuzzers: those of the suite, and what happens to them.

A conversation is what up to three clients send, piece by piece.  Mutations work on messages (drop,
repeat, swap, splice, and new ones that the grammar makes), on fields, on bytes, and on the cuts.
Most of them leave the beginning alone, or everything would end in the greeting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from tmqp.testing import Seeded, damage, pieces
from tmqp.testing.conformance import Case
from tmqp.testing.conformance.patterns import Names
from tmqp.testing.conformance.steps import Say
from tmqp_conformance.grammar import Grammar, Piece, Subject

__all__ = ["MUTATIONS", "Marks", "as_pieces", "mutated", "seeds", "with_names"]

_MARK: Final = re.compile(rb"\$([a-z][a-z0-9])_{5}")
_LINES: Final = 3
#: Longer conversations are no seeds: they cost time and teach nothing.
_SEED_BYTES: Final = 20_000


class Marks(Names):
    """Names that stay marks, so that each run can have its own."""

    def __init__(self) -> None:
        super().__init__("")

    def value(self, word: str) -> str:
        """A mark of eight characters: the length of a name may be told before it."""
        return f"${word[0]}{word[-1]}_____"


def seeds(
    cases: Iterable[Case], make_marks: Callable[[Case], Names] = lambda _case: Marks()
) -> list[list[Piece]]:
    """The conversations of cases for servers, with marks where names are.

    :param make_marks: the marks of a case.
    """
    found = []
    for case in cases:
        lines: dict[str, int] = {}
        conversation: list[Piece] = []
        marks = make_marks(case)
        for step in case.steps:
            if not isinstance(step, Say):
                continue
            line = lines.setdefault(step.line, len(lines))
            parts = [
                item if isinstance(item, bytes) else item.encode(marks, f"m{len(conversation)}")
                for item in step.items
            ]
            conversation.append(Piece(line, b"".join(parts), case.place(step.line)))
        size = sum(len(piece.data) for piece in conversation)
        if conversation and len(lines) <= _LINES and size <= _SEED_BYTES:
            found.append(conversation)
    return found


def with_names(data: bytes, number: int) -> bytes:
    """The bytes of a conversation with names that no other of a million has."""
    if b"$" not in data:
        return data
    return _MARK.sub(rb"\g<1>x" + f"{number & 0xFFFFF:05x}".encode(), data)


def mutated(
    draw: Seeded, conversation: list[Piece], subject: Subject
) -> tuple[list[Piece], list[str]]:
    """A conversation with one to four mutations, and their names."""
    found = list(conversation)
    names = []
    for _ in range(1 + draw.below(4)):
        name = _NAMES_OF_MUTATIONS[draw.below(len(_NAMES_OF_MUTATIONS))]
        place = draw.below(len(found))
        # The first piece of a line is its greeting: three times in four another one is taken.
        if place == 0 and len(found) > 1 and not draw.one_in(4):
            place = 1 + draw.below(len(found) - 1)
        piece = found[place]
        grammar = subject.grammars[piece.place]
        change = MUTATIONS[name](draw, grammar, piece, subject.seeds)
        found[place] = Piece(piece.line, change, piece.place)
        names.append(name)
    return found, names


def as_pieces(draw: Seeded, conversation: list[Piece]) -> list[Piece]:
    """The conversation, now and then cut into smaller pieces."""
    if not draw.one_in(3):
        return conversation
    return [
        Piece(piece.line, part, piece.place)
        for piece in conversation
        for part in pieces(draw, piece.data, 1 + draw.below(6))
    ]


_Change: TypeAlias = Callable[[Seeded, Grammar, Piece, list[list[Piece]]], bytes]


def _drop(draw: Seeded, grammar: Grammar, piece: Piece, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = grammar.split(piece.data)
    if messages:
        del messages[draw.below(len(messages))]
    return begin + b"".join(messages) + rest


def _repeat(draw: Seeded, grammar: Grammar, piece: Piece, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = grammar.split(piece.data)
    if messages:
        place = draw.below(len(messages))
        messages[place:place] = [messages[place]] * (1 + draw.below(3))
    return begin + b"".join(messages) + rest


def _swap(draw: Seeded, grammar: Grammar, piece: Piece, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = grammar.split(piece.data)
    if len(messages) > 1:
        one, other = draw.below(len(messages)), draw.below(len(messages))
        messages[one], messages[other] = messages[other], messages[one]
    return begin + b"".join(messages) + rest


def _splice(draw: Seeded, grammar: Grammar, piece: Piece, others: list[list[Piece]]) -> bytes:
    """Add a message of another conversation at the same address."""
    other = others[draw.below(len(others))]
    chosen = other[draw.below(len(other))]
    if chosen.place != piece.place:
        return piece.data
    _, messages, _ = grammar.split(chosen.data)
    if not messages:
        return piece.data
    return piece.data + messages[draw.below(len(messages))]


def _field(draw: Seeded, grammar: Grammar, piece: Piece, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = grammar.split(piece.data)
    if not messages:
        return piece.data
    place = draw.below(len(messages))
    messages[place] = grammar.changed(draw, messages[place])
    return begin + b"".join(messages) + rest


def _bytes(draw: Seeded, _grammar: Grammar, piece: Piece, _others: list[list[Piece]]) -> bytes:
    return damage(draw, piece.data)


def _odd(draw: Seeded, grammar: Grammar, piece: Piece, _others: list[list[Piece]]) -> bytes:
    return piece.data + grammar.odd(draw)


def _plain(draw: Seeded, grammar: Grammar, piece: Piece, _others: list[list[Piece]]) -> bytes:
    return piece.data + grammar.plain(draw)


#: Every mutation by its name.
MUTATIONS: Final[dict[str, _Change]] = {
    "drop": _drop,
    "repeat": _repeat,
    "swap": _swap,
    "splice": _splice,
    "field": _field,
    "fields": _field,
    "bytes": _bytes,
    "odd": _odd,
    "plain": _plain,
}
_NAMES_OF_MUTATIONS: Final = tuple(MUTATIONS)
