"""Names of topics and channels (N17), and their form in error texts if they are invalid."""

from __future__ import annotations

from typing import Final

__all__ = ["EPHEMERAL", "MAX_NAME_BYTES", "is_ephemeral", "is_name", "quoted"]

#: Longest name, its suffix included.
MAX_NAME_BYTES: Final = 64
#: Ends the names of topics and channels that live as long as somebody uses them (N73).
EPHEMERAL: Final = b"#ephemeral"

_ALLOWED: Final = b".-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ESCAPES: Final[dict[str, str]] = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def is_name(name: bytes) -> bool:
    """Whether a topic or channel may have this name: some of the characters ``.a-zA-Z0-9_-``, which
    ``#ephemeral`` may follow, at most 64 in all."""
    if not 0 < len(name) <= MAX_NAME_BYTES:
        return False
    if name.endswith(EPHEMERAL):
        name = name[: len(name) - len(EPHEMERAL)]
    return len(name) > 0 and not name.translate(None, _ALLOWED)


def is_ephemeral(name: bytes) -> bool:
    """Whether a topic or channel of this name is removed with its last user."""
    return name.endswith(EPHEMERAL)


def quoted(name: bytes) -> bytes:
    """A name in quotation marks, as the original's error texts write it (Go's ``%q``)."""
    parts = ['"']
    for character in name.decode("utf-8", "surrogateescape"):
        code = ord(character)
        if character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif 0xDC80 <= code <= 0xDCFF:
            parts.append(f"\\x{code - 0xDC00:02x}")
        elif character.isprintable():
            parts.append(character)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        elif code <= 0xFFFF:
            parts.append(f"\\u{code:04x}")
        else:
            parts.append(f"\\U{code:08x}")
    parts.append('"')
    return "".join(parts).encode()
