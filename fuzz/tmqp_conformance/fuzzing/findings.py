"""Findings as files, which ``replay`` and ``shrink`` read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tmqp_conformance.fuzzing.model import Act
from tmqp_conformance.fuzzing.native import NATIVE_GRAMMARS
from tmqp_conformance.fuzzing.shrinking import shorter, smaller_pieces
from tmqp_conformance.fuzzing.wire import Finding
from tmqp_conformance.grammar import Grammar, Piece
from tmqp_conformance.packs import PACKS

if TYPE_CHECKING:
    from tmqp_conformance.fuzzing.differ import Difference
    from tmqp_conformance.fuzzing.search import ModelFinding

__all__ = ["Found", "read_corpus", "read_found", "write_corpus", "write_model", "write_wire"]

_FORMAT: Final = "tmqp-conformance finding 1"


def _grammars_of(pack: str) -> Mapping[str, Grammar]:
    """The grammar of each address of a pack's server; of a server of TMQP for an empty name."""
    return PACKS[pack].grammars if pack else NATIVE_GRAMMARS


@dataclass(frozen=True, slots=True)
class Found:
    """A finding: what was sent (``conversation``), or what clients did (``acts``).

    ``pack`` is the pack of the server's protocol; empty for TMQP.
    """

    conversation: tuple[Piece, ...] = ()
    acts: tuple[Act, ...] = ()
    pack: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """The addresses of the server that it needs, the first one among them."""
        return tuple(dict.fromkeys(["", *(piece.place for piece in self.conversation)]))

    @property
    def size(self) -> int:
        """How many parts it has."""
        return len(self.conversation) + len(self.acts)

    def smaller(self) -> Iterator[Found]:
        """Smaller ones: with fewer messages, with fewer parts, or with fewer bytes in one."""
        for pieces in smaller_pieces(self.conversation, _grammars_of(self.pack)):
            yield Found(pieces, pack=self.pack)
        # The first action connects the client that creates the queues.
        for acts in shorter(self.acts, keep=1):
            yield Found((), acts)

    def as_json(self, message: str, seed: int | None = None) -> dict[str, Any]:
        """The finding as JSON."""
        return {
            "format": _FORMAT,
            "message": message,
            "seed": seed,
            "pack": self.pack,
            "conversation": [
                {"line": piece.line, "at": piece.place, "hex": piece.data.hex()}
                for piece in self.conversation
            ],
            "acts": [act.as_json() for act in self.acts],
        }


def write_wire(
    directory: Path,
    finding: Finding | Difference,
    seed: int,
    number: int,
    kind: str = "wire",
    pack: str = "",
) -> Path:
    """Write what the wire fuzzer found, or the differential one (``diff``); returns where.

    :raises OSError: when that fails.
    """
    path = directory / f"found.{pack or kind}.{seed}.{number}.json"
    found = Found(finding.conversation, pack=pack)
    return _write(path, found.as_json(finding.message, seed))


def write_model(directory: Path, finding: ModelFinding) -> Path:
    """Write what the model fuzzer found; returns where.

    :raises OSError: when that fails.
    """
    path = directory / f"found.model.{finding.seed}.json"
    return _write(path, Found((), tuple(finding.acts)).as_json(finding.message, finding.seed))


def read_corpus(directory: Path, pack: str, places: Collection[str]) -> list[list[Piece]]:
    """Read the conversations of earlier runs that are about this protocol and these addresses.

    :raises ValueError: if a file in the directory is invalid.
    """
    found = [read_found(path) for path in sorted(directory.glob("*.json"))]
    return [
        [*each.conversation]
        for each in found
        if each.pack == pack and each.conversation and {*each.places} - {""} <= {*places}
    ]


def write_corpus(directory: Path, pack: str, learnt: Iterable[list[Piece]]) -> int:
    """Write the conversations that a run has learnt, one per file; return the number of files.

    :raises OSError: if that fails.
    """
    names = set()
    for conversation in learnt:
        table = Found(tuple(conversation), pack=pack).as_json("")
        name = hashlib.sha256(json.dumps(table).encode()).hexdigest()[:16]
        _write(directory / f"{name}.json", table)
        names.add(name)
    return len(names)


def _write(path: Path, table: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return path


def read_found(path: Path) -> Found:
    """Read a finding.

    :raises ValueError: if the file is not a finding.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(table, dict) or table.get("format") != _FORMAT:
        raise ValueError(f"{path}: not a finding")
    try:
        pieces = tuple(
            Piece(int(entry["line"]), bytes.fromhex(entry["hex"]), entry.get("at", ""))
            for entry in table["conversation"]
        )
        acts = tuple(Act.of(entry) for entry in table["acts"])
        found = Found(pieces, acts, table.get("pack", ""))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: not a finding: {error!r}") from error
    if not pieces and not acts:
        raise ValueError(f"{path}: the finding is empty")
    _check_places(path, found)
    return found


def _check_places(path: Path, found: Found) -> None:
    """Refuse a finding whose pack or address does not exist.

    :raises ValueError: if one does not exist.
    """
    if found.pack and found.pack not in PACKS:
        known = ", ".join(PACKS)
        raise ValueError(f"{path}: there is no pack {found.pack!r}; there are {known}")
    known_places = _grammars_of(found.pack)
    places: dict[int, str] = {}
    for piece in found.conversation:
        if piece.place not in known_places:
            raise ValueError(f"{path}: such a server has no address {piece.place!r}")
        if places.setdefault(piece.line, piece.place) != piece.place:
            raise ValueError(f"{path}: line {piece.line} is at two addresses")
