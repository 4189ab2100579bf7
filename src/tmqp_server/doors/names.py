"""Names of other protocols as names of channels, and back.

A name that TMQP allows stays as it is.  Otherwise each byte that a channel's name must not contain
(control characters, ``@ ;*``, direction marks, bytes that are not UTF-8) is written as ``%xx``.  A
percent sign is escaped if it would be read as such an escape.  So every name of another protocol
has one channel, and no two names share one.

TMQP ignores case, other protocols do not: :func:`exact_channel` marks the name, and the broker then
distinguishes ``Orders`` from ``orders`` (``engine/model/channels.py``).

:class:`DoorNames` is what a door uses: the same, with names that the configuration maps
(*aliases*).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from tmqp.constants import FORBIDDEN_NAME_CHARACTERS
from tmqp.names import EXACT_MARK, fault_of_name

__all__ = ["DoorNames", "channel_of", "exact_channel", "foreign_name"]

_HEXADECIMAL: Final = "0123456789ABCDEFabcdef"
#: The channel of the empty name.
_EMPTY: Final = "%"


def channel_of(name: bytes) -> str:
    """The channel that a name of another protocol stands for; TMQP ignores its case."""
    if not name:
        return _EMPTY
    # Bytes that are not UTF-8 become lone surrogates, which no valid text has.
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
    """As :func:`channel_of`, for a case-sensitive protocol: the channel is marked as exact."""
    return EXACT_MARK + channel_of(name)


def foreign_name(channel: str) -> bytes:
    """The name that a channel has in another protocol.

    A TMQP channel whose name escapes an allowed character, such as ``a%41``, cannot be reached from
    other protocols: there it has the name of the channel ``aA``.
    """
    channel = channel.removeprefix(EXACT_MARK)
    if channel == _EMPTY:
        return b""
    if "%" not in channel:
        return channel.encode("utf-8", "surrogateescape")
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


@final
class DoorNames:
    """The names of one door.

    A name that has an alias stands for the alias's channel, in any case.  If another name would
    stand for the same channel, its first character is escaped: as without aliases, no two names
    share a channel.

    :param aliases: names of the protocol, and the channels that they stand for.
    :raises ValueError: when an alias is invalid; the text says which and why.
    """

    __slots__ = ("_channels", "_names")

    def __init__(self, aliases: Mapping[str, str] | None = None) -> None:
        #: Channels by name, and names by channel in lower case.
        self._channels: dict[bytes, str] = {}
        self._names: dict[str, bytes] = {}
        for name, channel in (aliases or {}).items():
            self._add(name, channel)

    def _add(self, name: str, channel: str) -> None:
        if not name:
            raise ValueError(f"the name for the channel {channel!r} is empty")
        if not channel or channel_of(channel.encode()) != channel:
            raise ValueError(
                f"{name!r} cannot stand for {channel!r}: a channel's name is not empty and has no"
                " spaces, @, ;, * or control characters, and no escapes such as %20"
            )
        other = self._names.get(channel.lower())
        if other is not None:
            raise ValueError(
                f"{other.decode()!r} and {name!r} both stand for {channel!r}; a channel has one"
                " name at a door, in whatever case it is written"
            )
        self._channels[name.encode()] = channel
        self._names[channel.lower()] = name.encode()

    @property
    def aliases(self) -> dict[bytes, str]:
        """The names that the configuration maps, with their channels."""
        return dict(self._channels)

    def channel_of(self, name: bytes) -> str:
        """The channel that a name stands for; TMQP ignores its case."""
        if not self._names:
            return channel_of(name)
        found = self._channels.get(name)
        return self._apart(channel_of(name)) if found is None else found

    def exact_channel(self, name: bytes) -> str:
        """As :meth:`channel_of`, for a case-sensitive protocol.  An alias's channel is not marked
        as exact, so clients of case-insensitive protocols reach it in any spelling."""
        if not self._names:
            return exact_channel(name)
        found = self._channels.get(name)
        return EXACT_MARK + self._apart(channel_of(name)) if found is None else found

    def foreign_name(self, channel: str) -> bytes:
        """The name that a channel has here."""
        if self._names:
            found = self._names.get(channel.removeprefix(EXACT_MARK).lower())
            if found is not None:
                return found
        return foreign_name(channel)

    def _apart(self, channel: str) -> str:
        """The channel, or an escaped one if an alias already stands for it."""
        if channel.lower() not in self._names:
            return channel
        data = channel[0].encode("utf-8")
        return "".join([f"%{byte:02X}" for byte in data]) + channel[1:]


def _is_escape(text: str, at: int) -> bool:
    """Whether two hexadecimal digits follow the percent sign at *at*."""
    digits = text[at + 1 : at + 3]
    return len(digits) == 2 and digits[0] in _HEXADECIMAL and digits[1] in _HEXADECIMAL
