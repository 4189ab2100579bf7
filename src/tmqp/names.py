"""The characters that no name may contain, because they affect how a terminal or a log shows it.

Names of channels, routers, bindings, readers, applications and nodes, and the ids, names and types
of clients are all checked here.  Refused are control characters (C0, DEL and C1: a terminal obeys
them), the marks that turn the direction of text (a name then looks like another one), and the two
line separators.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXACT_MARK", "fault_of_name"]

#: Before a channel's name: its upper and lower case differ.  No name contains this character.
EXACT_MARK: Final = "\x01"

_CONTROL: Final = "a control character"
_DIRECTION: Final = "a mark that turns the direction of text"
_SEPARATOR: Final = "a line separator"
_MARKS: Final = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_SEPARATORS: Final = "\u2028\u2029"


def fault_of_name(name: str) -> str:
    """Name the first invalid character of a name, as in ``a control character (U+0085)``.

    Return an empty string if there is none.
    """
    if name.isascii() and name.isprintable():
        return ""
    for character in name:
        if character < " " or "\x7f" <= character < "\xa0":
            what = _CONTROL
        elif character in _MARKS:
            what = _DIRECTION
        elif character in _SEPARATORS:
            what = _SEPARATOR
        else:
            continue
        return f"{what} (U+{ord(character):04X})"
    return ""
