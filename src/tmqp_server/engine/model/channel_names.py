"""Names of channels: which are valid, how they are escaped, and which pass a filter."""

from __future__ import annotations

from typing import Final

from tmqp.constants import FORBIDDEN_NAME_CHARACTERS
from tmqp.names import fault_of_name

__all__ = ["escaped_name", "is_channel_name", "matches"]

#: The most stars of a filter with one inside; a filter with more matches nothing, because each
#: costs time.
_MOST_STARS: Final = 8


def is_channel_name(name: str, max_bytes: int) -> bool:
    """Whether a channel may have this name (F47).

    Control characters and their like are refused as well (``tmqp.names``): names travel in header
    lines, where a line break would start another header, and are shown in terminals.
    """
    if not name or len(name.encode("utf-8", "surrogatepass")) > max_bytes:
        return False
    for character in name:
        if character in FORBIDDEN_NAME_CHARACTERS:
            return False
    return not fault_of_name(name)


def escaped_name(name: str) -> str:
    """A name with its capitals percent-encoded; if it has none, its first character is encoded."""
    parts = [each if each == each.lower() else _percent(each) for each in name]
    found = "".join(parts)
    return _percent(name[:1]) + name[1:] if found == name else found


def _percent(text: str) -> str:
    return "".join([f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")])


def matches(text: str, pattern: str) -> bool:
    """Whether *text* passes the filter *pattern* (F53); an empty filter lets everything pass.

    ``*x*`` matches text that contains x, ignoring case; ``*x`` text that ends with x, and ``x*``
    text that starts with x, case-sensitively; ``a*b`` requires both, with any text between.  Any
    other pattern must be equal, ignoring case.
    """
    if not pattern:
        return True
    if "*" in pattern[1:-1]:
        return text.lower() == pattern.lower() or _has_pieces(text, pattern)
    if pattern.startswith("*"):
        if pattern.endswith("*"):
            return pattern[1:-1].lower() in text.lower()
        return text.endswith(pattern[1:])
    if pattern.endswith("*"):
        return text.startswith(pattern[:-1])
    return text.lower() == pattern.lower()


def _has_pieces(text: str, pattern: str) -> bool:
    """Whether *text* contains the pieces between the stars of a pattern, in this order."""
    if pattern.count("*") > _MOST_STARS:
        return False
    if pattern.startswith("*") and pattern.endswith("*"):
        text, pattern = text.lower(), pattern.lower()
    pieces = pattern.split("*")
    at = len(pieces[0])
    if not text.startswith(pieces[0]):
        return False
    for piece in pieces[1:-1]:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - at >= len(pieces[-1]) and text.endswith(pieces[-1])
