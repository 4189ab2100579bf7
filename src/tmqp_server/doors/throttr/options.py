"""The configuration of the door of Throttr: the limits of one peer, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tmqp_server.doors.tables import check_positive
from tmqp_wires.throttr.words import DIALECT_71, DIALECTS, VALUE_SIZES, VERSION_BYTES

__all__ = ["ThrottrLimits", "ThrottrOptions"]

#: Waiting requests are passed to the hub in nested calls, each time that so many are answered.
_LEAST_UNANSWERED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottrLimits:
    """The limits of one peer.

    :raises ValueError: when a value is not positive.
    """

    max_request_bytes: int = 1_048_576
    """Bytes of a request; a longer one is answered with 0x00 and ends the connection.  Requests of
    two-byte values have at most 65,797."""

    max_listing_bytes: int = 3_145_728
    """Bytes of the reply to LIST, STATS, CONNECTIONS, CHANNELS or CHANNEL; a longer one is not
    written, and the request is answered with 0x00."""

    max_unanswered: int = 256
    """Requests of one client that are processed before the first of them is answered; beyond this,
    the server does not read from the client. At least 16."""

    max_early_bytes: int = 2_097_152
    """Bytes that a client may send before the server has accepted it; more end the connection."""

    def __post_init__(self) -> None:
        check_positive(self)
        if self.max_unanswered < _LEAST_UNANSWERED:
            raise ValueError(
                f"max_unanswered must be at least {_LEAST_UNANSWERED}, got {self.max_unanswered}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottrOptions:
    """What a server does for clients of Throttr.

    :raises ValueError: for a value that is not supported.
    """

    dialect: str = DIALECT_71
    """The version that is spoken, ``7.1`` or ``7.3``."""

    value_bytes: int = 2
    """Bytes of quotas, times to live, and sizes of values: 1, 2, 4 or 8."""

    space: str = ""
    """The space in which keys are kept.  By default it is ``throttr-2`` where values have two
    bytes: doors of one size share their keys."""

    version: str = ""
    """The version of the server that INFO reports; if empty, that of an original with this
    dialect."""

    def __post_init__(self) -> None:
        if self.dialect not in DIALECTS:
            raise ValueError(f"dialect must be {' or '.join(DIALECTS)}, not {self.dialect!r}")
        if self.value_bytes not in VALUE_SIZES:
            raise ValueError(f"value_bytes must be 1, 2, 4 or 8, not {self.value_bytes}")
        if len(self.version.encode()) > VERSION_BYTES:
            raise ValueError(f"version has at most {VERSION_BYTES} bytes, not {self.version!r}")
