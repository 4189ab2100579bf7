"""What tests share about recorded exchanges: the one place that opens their files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from tmqp.testing import Exchange, RecordedFrame, join_exchanges, parse_exchange, recorded_frames

__all__ = ["CAPTURES", "load_exchange", "load_exchanges", "load_frames", "load_session"]

CAPTURES: Final = Path(__file__).parent / "data" / "captures"


@cache
def load_exchanges() -> tuple[Exchange, ...]:
    """Every recorded exchange, in order of the files' names."""
    paths = sorted(CAPTURES.glob("*.json"))
    return tuple([parse_exchange(path.stem, path.read_bytes()) for path in paths])


def load_exchange(beginning: str) -> Exchange:
    """The one exchange whose name begins so (``probe-017``)."""
    (found,) = [exchange for exchange in load_exchanges() if exchange.name.startswith(beginning)]
    return found


def load_session(family: str) -> Exchange:
    """The long session of ``real`` or ``fixed``: its files one after the other."""
    parts = [each for each in load_exchanges() if each.name.startswith(f"{family}-")]
    return join_exchanges(family, parts)


@cache
def load_frames() -> tuple[RecordedFrame, ...]:
    """Every complete recorded frame."""
    return tuple(recorded_frames(load_exchanges()))
