"""Names of destinations that mean several: ``A,B``, ``A.*`` and ``A.>``."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_COMPOSITE", "has_wildcards", "matches"]

#: Destinations that one name may mean.
MAX_COMPOSITE: Final = 32


def has_wildcards(name: str) -> bool:
    """Whether a name means all that are like it."""
    if "*" not in name and ">" not in name:
        return False
    parts = name.split(".")
    return "*" in parts or ">" in parts


def matches(pattern: str, name: str) -> bool:
    """Whether a name is like a pattern: ``*`` is one part of it, ``>`` any number of them."""
    wanted = pattern.split(".")
    found = name.split(".")
    for at, part in enumerate(wanted):
        if part == ">":
            return True
        if at >= len(found) or part not in ("*", found[at]):
            return False
    return len(wanted) == len(found)
