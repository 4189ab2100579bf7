"""Owns message ids: unique without asking the system for randomness each time.

An id has the form of the original's, 32 lower-case hexadecimal digits (F45): 16 drawn once for each
client, and 16 that count.  The last three of them come from a table: writing a number costs as much
as all else that is done to push a message.
"""

from __future__ import annotations

import secrets
from typing import Final

__all__ = ["IdSource", "new_client_id"]

_PREFIX_BYTES: Final = 8
_LAST: Final = [f"{number:03x}" for number in range(4_096)]


class IdSource:
    """Calling it returns the next id."""

    __slots__ = ("_count", "_head", "_prefix")

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(_PREFIX_BYTES)
        self._head = f"{self._prefix}{0:013x}"
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        last = self._count & 0xFFF
        if last == 0:
            self._head = f"{self._prefix}{self._count >> 12:013x}"
        return self._head + _LAST[last]


def new_client_id() -> str:
    """An id for a client that was given none: 32 random hexadecimal digits (F30)."""
    return secrets.token_hex(16)
