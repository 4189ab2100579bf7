"""Names of headers, looked for in header blocks as they are on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from tmqp._compat import i64

__all__ = ["HeaderNames"]

_INTERPRETED: Final = __file__.endswith(".py")
_COLON: Final = 58
_CR: Final = 13
_LF: Final = 10
#: The bit that makes a letter lower-case.
_LOWER: Final = 32
_A: Final = 97
_Z: Final = 122


@final
class HeaderNames:
    """Some names of headers.

    :param names: in any case; each is ASCII and ends in a letter.
    """

    __slots__ = ("_last_letters", "_marks", "_names")

    def __init__(self, names: Iterable[str]) -> None:
        self._names: list[bytes] = [name.lower().encode("ascii") for name in names]
        self._marks: list[bytes] = [name + b":" for name in self._names]
        #: A bit for each letter that a name ends in.
        self._last_letters: i64 = 0
        for name in self._names:
            self._last_letters |= 1 << (name[-1] - _A)

    def may_occur(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether the block between two places has a header of one of the names, in any case.

        The name is what stands before the first colon of a line, as in ``parse_headers``.
        """
        if _INTERPRETED:
            block = data[start:stop].lower()
            for mark in self._marks:
                found = block.find(mark)
                while found > 0 and block[found - 2 : found] != b"\r\n":
                    found = block.find(mark, found + 1)
                if found >= 0:
                    return True
            return False
        for at in range(start + 1, stop):
            if data[at] == _COLON:
                letter: i64 = data[at - 1] | _LOWER
                if _A <= letter <= _Z and self._last_letters >> (letter - _A) & 1:
                    for name in self._names:
                        begin: i64 = at - len(name)
                        if (
                            begin == start or (begin >= start + 2 and _ends_line(data, begin))
                        ) and data[begin:at].lower() == name:
                            return True
        return False


def _ends_line(data: bytes, at: i64) -> bool:
    """Whether a line ends before a place."""
    return data[at - 1] == _LF and data[at - 2] == _CR
