"""How the time of a soak is shared: each ``soak_*.py`` of this folder gets an equal part, but for
the conformance tool's, which has as much time as these together, and that of groups, which has
twice as much."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["first_seed", "seconds", "whole"]


def whole() -> float:
    """The time of a soak in seconds: ``TMQP_SOAK_SECONDS`` (600)."""
    return float(os.environ.get("TMQP_SOAK_SECONDS", "600"))


def seconds() -> float:
    """What one part may take: the time divided by the number of parts that share it."""
    return whole() / (len(list(Path(__file__).parent.glob("soak_*.py"))) - 2)


def first_seed() -> int:
    """Where seeds begin: ``TMQP_SOAK_SEED`` (1)."""
    return int(os.environ.get("TMQP_SOAK_SEED", "1"))
