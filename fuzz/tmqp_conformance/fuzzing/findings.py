"""Findings as files, which ``replay`` and ``shrink`` read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tmqp_conformance.fuzzing.model import Act
from tmqp_conformance.fuzzing.mutate import Piece
from tmqp_conformance.fuzzing.shrinking import shorter
from tmqp_conformance.fuzzing.wire import Finding, smaller_pieces

if TYPE_CHECKING:
    from tmqp_conformance.fuzzing.search import ModelFinding

__all__ = ["Found", "read_found", "write_model", "write_wire"]

_FORMAT: Final = "tmqp-conformance finding 1"


@dataclass(frozen=True, slots=True)
class Found:
    """A finding: what was sent (``conversation``), or what clients did (``acts``)."""

    conversation: tuple[Piece, ...] = ()
    acts: tuple[Act, ...] = ()

    @property
    def size(self) -> int:
        """How many parts it has."""
        return len(self.conversation) + len(self.acts)

    def smaller(self) -> Iterator[Found]:
        """Smaller ones: with fewer parts, or with fewer bytes in one."""
        for pieces in smaller_pieces(self.conversation):
            yield Found(pieces)
        # The first action connects the client that creates the queues.
        for acts in shorter(self.acts, keep=1):
            yield Found((), acts)

    def as_json(self, message: str, seed: int | None = None) -> dict[str, Any]:
        """The finding as JSON."""
        return {
            "format": _FORMAT,
            "message": message,
            "seed": seed,
            "conversation": [
                {"line": piece.line, "hex": piece.data.hex()} for piece in self.conversation
            ],
            "acts": [act.as_json() for act in self.acts],
        }


def write_wire(directory: Path, finding: Finding, seed: int, number: int) -> Path:
    """Write what the wire fuzzer found; returns where.

    :raises OSError: when that fails.
    """
    path = directory / f"found.wire.{seed}.{number}.json"
    return _write(path, Found(finding.conversation).as_json(finding.message, seed))


def write_model(directory: Path, finding: ModelFinding) -> Path:
    """Write what the model fuzzer found; returns where.

    :raises OSError: when that fails.
    """
    path = directory / f"found.model.{finding.seed}.json"
    return _write(path, Found((), tuple(finding.acts)).as_json(finding.message, finding.seed))


def _write(path: Path, table: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return path


def read_found(path: Path) -> Found:
    """Read a finding.

    :raises ValueError: when the file is none.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(table, dict) or table.get("format") != _FORMAT:
        raise ValueError(f"{path}: not a finding")
    try:
        pieces = tuple(
            Piece(int(entry["line"]), bytes.fromhex(entry["hex"]))
            for entry in table["conversation"]
        )
        acts = tuple(Act.of(entry) for entry in table["acts"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a finding: {error!r}") from error
    if not pieces and not acts:
        raise ValueError(f"{path}: the finding is empty")
    return Found(pieces, acts)
