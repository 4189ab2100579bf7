"""Patterns of names, as those of the protocol's lists (F53)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["fits"]


def fits(name: str, patterns: Sequence[str], *, any_case: bool = False) -> bool:
    """Whether a name fits one of the patterns: ``*x*`` contains, ``*x`` ends with, ``x*`` begins
    with, anything else equals; ``*`` matches everything.
    """
    if any_case:
        name = name.lower()
    for each in patterns:
        pattern = each.lower() if any_case else each
        if pattern == "*":
            return True
        if pattern.startswith("*"):
            if pattern.endswith("*"):
                if pattern[1:-1] in name:
                    return True
            elif name.endswith(pattern[1:]):
                return True
        elif pattern.endswith("*"):
            if name.startswith(pattern[:-1]):
                return True
        elif name == pattern:
            return True
    return False
