"""Names of other protocols as names of channels, and back.

A name that TMQP allows stays as it is.  Otherwise each byte of what a channel's name must not have
(control characters, ``@ ;*``, marks that turn the direction of text, bytes that are no UTF-8) is
written as ``%xx``.  A percent sign is escaped where it would be read as such an escape.  So every
name of another protocol has one channel, and no two names share one.

TMQP ignores case, other protocols do not: :func:`exact_channel` marks the name, and the broker then
tells ``Orders`` from ``orders`` (``engine/model/channels.py``).
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import FORBIDDEN_NAME_CHARACTERS
from tmqp.names import EXACT_MARK, fault_of_name

__all__ = ["channel_of", "exact_channel", "foreign_name"]

_HEXADECIMAL: Final = "0123456789ABCDEFabcdef"
#: The channel of the empty name.
_EMPTY: Final = "%"


def channel_of(name: bytes) -> str:
    """The channel that a name of another protocol stands for, in any case."""
    if not name:
        return _EMPTY
    # Bytes that are no UTF-8 become lone surrogates, which no text has.
    text = name.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isalnum():
        return text
    if text == _EMPTY:
        return "%25"
    parts: list[str] = []
    for at, character in enumerate(text):
        escaped = (
            character in FORBIDDEN_NAME_CHARACTERS
            or (character == "%" and _is_escape(text, at))
            or "\ud800" <= character <= "\udfff"
            or fault_of_name(character)
        )
        if escaped:
            data = character.encode("utf-8", "surrogateescape")
            parts.append("".join([f"%{byte:02X}" for byte in data]))
        else:
            parts.append(character)
    return "".join(parts)


def exact_channel(name: bytes) -> str:
    """The same for a protocol whose names differ by case: the name is marked as exact."""
    return EXACT_MARK + channel_of(name)


def foreign_name(channel: str) -> bytes:
    """The name that a channel has in another protocol.

    A channel that TMQP clients have named with a percent sign and two hexadecimal digits cannot be
    named by others.
    """
    channel = channel.removeprefix(EXACT_MARK)
    if channel == _EMPTY:
        return b""
    found = bytearray()
    at = 0
    while at < len(channel):
        if channel[at] == "%" and _is_escape(channel, at):
            found.append(int(channel[at + 1 : at + 3], 16))
            at += 3
        else:
            found += channel[at].encode("utf-8", "surrogateescape")
            at += 1
    return bytes(found)


def _is_escape(text: str, at: int) -> bool:
    """Whether two hexadecimal digits follow a percent sign."""
    digits = text[at + 1 : at + 3]
    return len(digits) == 2 and digits[0] in _HEXADECIMAL and digits[1] in _HEXADECIMAL
