"""Owns message ids: unique without asking the system for randomness each time.

An id has the form of the original's, 32 lower-case hexadecimal digits (F45): 16 drawn once for each
client, and 16 that count.
"""

from __future__ import annotations

import secrets

__all__ = ["IdSource", "new_client_id"]

_PREFIX_BYTES = 8


class IdSource:
    """Calling it returns the next id."""

    __slots__ = ("_count", "_prefix")

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(_PREFIX_BYTES)
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count:016x}"


def new_client_id() -> str:
    """An id for a client that was given none: 32 random hexadecimal digits (F30)."""
    return secrets.token_hex(16)
