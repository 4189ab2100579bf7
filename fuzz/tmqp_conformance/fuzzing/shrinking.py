"""Makes findings smaller: fewer messages first, then fewer parts, then smaller parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from tmqp_conformance.grammar import Grammar, Piece

__all__ = ["SHRINK_TRIES", "shorter", "smaller_pieces", "smallest"]

#: How many candidates are tried at most.
SHRINK_TRIES: Final = 500

_Part = TypeVar("_Part")
_Candidate = TypeVar("_Candidate")


def shorter(parts: tuple[_Part, ...], keep: int = 0) -> Iterator[tuple[_Part, ...]]:
    """The parts without a half of them, a quarter, and so on to a single one.

    :param keep: so many at the beginning stay.
    """
    size = (len(parts) - keep) // 2 or 1
    while size and len(parts) > keep:
        for start in range(keep, len(parts), size):
            yield parts[:start] + parts[start + size :]
        size //= 2


def smallest(
    first: _Candidate,
    smaller: Callable[[_Candidate], Iterable[_Candidate]],
    is_wrong: Callable[[_Candidate], bool],
    go_on: Callable[[], bool] = lambda: True,
) -> _Candidate:
    """The smallest candidate that is still wrong, found in :data:`SHRINK_TRIES` tries at most.

    :param smaller: the next smaller ones, the smallest steps last.
    """
    best = first
    tries = 0
    found = True
    while found:
        found = False
        for candidate in smaller(best):
            tries += 1
            if tries > SHRINK_TRIES or not go_on():
                return best
            if is_wrong(candidate):
                best, found = candidate, True
                break
    return best


def smaller_pieces(
    pieces: tuple[Piece, ...], grammars: Mapping[str, Grammar]
) -> Iterator[tuple[Piece, ...]]:
    """Smaller conversations: with fewer messages in a piece, fewer pieces, fewer bytes.

    Messages come first: of a message that is cut, a server would wait for the rest.

    :param grammars: the grammar of each address of the server.
    """
    for place, piece in enumerate(pieces):
        begin, messages, rest = grammars[piece.place].split(piece.data)
        for fewer in shorter(tuple(messages)):
            yield _with(pieces, place, begin + b"".join(fewer) + rest)
    for candidate in shorter(pieces):
        if candidate:
            yield candidate
    for place, piece in enumerate(pieces):
        for cut in shorter(tuple(piece.data)):
            yield _with(pieces, place, bytes(cut))


def _with(pieces: tuple[Piece, ...], place: int, data: bytes) -> tuple[Piece, ...]:
    piece = pieces[place]
    return (*pieces[:place], Piece(piece.line, data, piece.place), *pieces[place + 1 :])
