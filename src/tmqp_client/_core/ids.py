"""Unpredictable message ids, without asking the system for randomness each time.

An id has the form of the original's, 32 lower-case hexadecimal digits (F45): 128 random bits, drawn
for many ids together.  Every receiver of a message reads its id, and answers are matched by id
(F44, F78), so an id must not allow a prediction of the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["IdSource"]

_ID_BYTES: Final = 16
_DIGITS: Final = 2 * _ID_BYTES
#: Ids that are drawn at once.
_PORTION: Final = 256


class IdSource:
    """Calling it returns the next id.

    :param random_hex: returns this number of random bytes as hexadecimal digits, as
        ``secrets.token_hex`` does.
    """

    __slots__ = ("_at", "_drawn", "_random_hex")

    def __init__(self, random_hex: Callable[[int], str]) -> None:
        self._random_hex = random_hex
        self._drawn = ""
        self._at = 0

    def __call__(self) -> str:
        at = self._at
        if at == len(self._drawn):
            self._drawn = self._random_hex(_ID_BYTES * _PORTION)
            at = 0
        self._at = at + _DIGITS
        return self._drawn[at : at + _DIGITS]
