"""Message ids that nobody can predict, without asking the system for randomness each time.

An id has the form of the original's, 32 lower-case hexadecimal digits (F45): 128 random bits, drawn
for many ids at once.  Whoever receives a message reads its id, and answers are matched by id (F44,
F78), so an id must tell nothing about the next one.
"""

from __future__ import annotations

import secrets
from typing import Final

__all__ = ["IdSource", "new_client_id"]

_ID_BYTES: Final = 16
_DIGITS: Final = 2 * _ID_BYTES
#: Ids that are drawn at once.
_PORTION: Final = 256


class IdSource:
    """Calling it returns the next id."""

    __slots__ = ("_at", "_drawn")

    def __init__(self) -> None:
        self._drawn = ""
        self._at = 0

    def __call__(self) -> str:
        at = self._at
        if at == len(self._drawn):
            self._drawn = secrets.token_hex(_ID_BYTES * _PORTION)
            at = 0
        self._at = at + _DIGITS
        return self._drawn[at : at + _DIGITS]


def new_client_id() -> str:
    """An id for a client that was given none: 32 random hexadecimal digits (F30)."""
    return secrets.token_hex(_ID_BYTES)
