"""Searches header blocks in their wire form for names of headers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from tmqp._compat import i64

__all__ = ["HeaderNames"]

_INTERPRETED: Final = __file__.endswith(".py")
_COLON: Final = 58
_CR: Final = 13
_LF: Final = 10
_LONGEST: Final = 62
#: The first byte value that is not ASCII.
_NOT_ASCII: Final = 128
#: The number of marks; a power of 2.
_MARKS: Final = 256
#: The bit that distinguishes lower from upper case in ASCII.
_LOWER: Final = 32


@final
class HeaderNames:
    """A set of header names to search for.

    :param names: in any case; each is ASCII, has no colon, and 1 to 62 characters.
    """

    __slots__ = ("_marks", "_names")

    def __init__(self, names: Iterable[str]) -> None:
        self._names: frozenset[bytes] = frozenset([name.lower().encode("ascii") for name in names])
        marks = bytearray(_MARKS)
        for name in self._names:
            if not 0 < len(name) <= _LONGEST:
                raise ValueError(f"a name has {len(name)} characters, 1 to {_LONGEST} are possible")
            marks[_mark(name[0], name[-1], len(name))] = 1
        #: Not 0 at the marks of the names; few other names have the same marks.
        self._marks = bytes(marks)

    def may_occur(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether a block in ``data`` has a header with one of the names, in any case.

        The name ends at the first colon of a line, as in ``parse_headers``.
        """
        if _INTERPRETED:
            names = self._names
            for line in data[start:stop].lower().split(b"\r\n"):
                name, colon, _ = line.partition(b":")
                if colon and name in names:
                    return True
            return False
        return self._look(data, start, stop) < 0

    def are_absent(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether a block in ``data`` has no header with one of the names, and only ASCII
        characters."""
        if _INTERPRETED:
            return data[start:stop].isascii() and not self.may_occur(data, start, stop)
        seen = self._look(data, start, stop)
        return 0 <= seen < _NOT_ASCII

    def _look(self, data: bytes, start: i64, stop: i64) -> i64:
        """Return all bytes of the block combined by "or"; -1 if it has a header with one of the
        names.

        In compiled code, examining each byte is faster than making objects.
        """
        seen: i64 = 0
        begin = start
        at = start
        while at < stop:
            byte: i64 = data[at]
            at += 1
            seen |= byte
            if byte == _COLON:
                if self._is_one(data, begin, at - 1):
                    return -1
                while at < stop:
                    byte = data[at]
                    at += 1
                    seen |= byte
                    if byte == _LF and data[at - 2] == _CR:
                        break
                begin = at
            elif byte == _LF and at - 2 >= start and data[at - 2] == _CR:
                begin = at
        return seen

    def _is_one(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether a part of ``data`` is one of the names."""
        length = stop - start
        if length == 0 or length > _LONGEST:
            return False
        mark = _mark(data[start], data[stop - 1], length)
        return self._marks[mark] != 0 and data[start:stop].lower() in self._names


def _mark(first: i64, last: i64, length: i64) -> i64:
    """Return a number below ``_MARKS`` for a name with these first and last letters, in any case,
    and this length."""
    return ((first | _LOWER) + 5 * (last | _LOWER) + 11 * length) & (_MARKS - 1)
