"""WireFormatInfo, with which both sides of OpenWire begin, and the result of the negotiation.

Each side sends its version and its abilities; the lower version applies, and only abilities of both
sides are used.  This side has no tight encoding, no cache of ids and no stack traces of exceptions,
so none of these is ever on the wire.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from tmqp_wires.openwire.data import (
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    Entry,
    Reader,
    WireError,
    encode_bytes,
    encode_map,
    read_map,
)

__all__ = ["FIRST_VERSION", "LAST_VERSION", "MAGIC", "WIRE_FORMAT", "WireFormat"]

#: The supported versions.
FIRST_VERSION: Final = 9
LAST_VERSION: Final = 12
#: The type of the command.
WIRE_FORMAT: Final = 1
MAGIC: Final = b"ActiveMQ"

_I: Final = Struct(">i")
_OFF: Final = ("CacheEnabled", "SizePrefixDisabled", "StackTraceEnabled", "TightEncodingEnabled")
_SILENCE: Final = "MaxInactivityDuration"
_FIRST_SILENCE: Final = "MaxInactivityDurationInitalDelay"
_FRAME: Final = "MaxFrameSize"
_PROVIDER: Final = "ProviderName"
_PROVIDER_VERSION: Final = "ProviderVersion"


@final
class WireFormat:
    """The WireFormatInfo of one side.

    ``silence_ms`` is the silence after which a side counts the other as disconnected, 0 for never;
    ``max_frame_bytes`` is the longest frame that it reads, 0 if not given.
    """

    __slots__ = (
        "first_silence_ms",
        "max_frame_bytes",
        "provider",
        "provider_version",
        "silence_ms",
        "version",
    )

    def __init__(
        self,
        version: int = LAST_VERSION,
        silence_ms: int = 30_000,
        first_silence_ms: int = 10_000,
        max_frame_bytes: int = 0,
        provider: str = "",
        provider_version: str = "",
    ) -> None:
        self.version = version
        self.silence_ms = silence_ms
        self.first_silence_ms = first_silence_ms
        self.max_frame_bytes = max_frame_bytes
        self.provider = provider
        self.provider_version = provider_version

    def encoded(self) -> bytes:
        """Encode it as a frame without the size."""
        entries: list[Entry] = [(name, BOOLEAN, False) for name in _OFF]
        entries.append(("TcpNoDelayEnabled", BOOLEAN, True))
        entries.append(("CacheSize", INTEGER, 0))
        entries.append((_SILENCE, LONG, self.silence_ms))
        entries.append((_FIRST_SILENCE, LONG, self.first_silence_ms))
        if self.max_frame_bytes:
            entries.append((_FRAME, LONG, self.max_frame_bytes))
        if self.provider:
            entries.append((_PROVIDER, STRING, self.provider))
        if self.provider_version:
            entries.append((_PROVIDER_VERSION, STRING, self.provider_version))
        properties = encode_bytes(encode_map(entries))
        return bytes((WIRE_FORMAT,)) + MAGIC + _I.pack(self.version) + properties

    @classmethod
    def read(cls, data: bytes) -> WireFormat:
        """Read it from a frame without the size.

        :raises WireError: when it is not one.
        """
        reader = Reader(data, 0)
        if reader.byte() != WIRE_FORMAT or reader.take(len(MAGIC)) != MAGIC:
            raise WireError("it does not begin with WireFormatInfo")
        found = cls(reader.integer(), 0, 0)
        said = {name: value for name, _, value in read_map(reader.bytes_())}
        found.silence_ms = _natural(said.get(_SILENCE))
        found.first_silence_ms = _natural(said.get(_FIRST_SILENCE))
        found.max_frame_bytes = _natural(said.get(_FRAME))
        found.provider = _text(said.get(_PROVIDER))
        found.provider_version = _text(said.get(_PROVIDER_VERSION))
        return found


def _natural(value: object) -> int:
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
