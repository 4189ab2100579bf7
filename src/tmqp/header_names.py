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
#: A name is longer than this, or its length has a bit of its own.
_LONGEST: Final = 62


@final
class HeaderNames:
    """Some names of headers.

    :param names: in any case; each is ASCII, has no colon, and at the most 62 characters.
    """

    __slots__ = ("_lengths", "_names")

    def __init__(self, names: Iterable[str]) -> None:
        self._names: frozenset[bytes] = frozenset([name.lower().encode("ascii") for name in names])
        #: A bit for each length that a name has.
        self._lengths: i64 = 0
        for name in self._names:
            if len(name) > _LONGEST:
                raise ValueError(f"a name has {len(name)} characters, at most {_LONGEST}")
            self._lengths |= 1 << len(name)

    def may_occur(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether the block between two places has a header of one of the names, in any case.

        The name is what stands before the first colon of a line, as in ``parse_headers``.
        """
        if _INTERPRETED:
            names = self._names
            for line in data[start:stop].lower().split(b"\r\n"):
                name, colon, _ = line.partition(b":")
                if colon and name in names:
                    return True
            return False
        # Compiled, one look at each byte is quicker, and makes no object.
        begin = start
        at = start
        while at < stop:
            byte: i64 = data[at]
            at += 1
            if byte == _COLON:
                if self._is_one(data, begin, at - 1):
                    return True
                while at < stop and not (data[at] == _LF and data[at - 1] == _CR):
                    at += 1
                at += 1
                begin = at
            elif byte == _LF and at - 2 >= start and data[at - 2] == _CR:
                begin = at
        return False

    def _is_one(self, data: bytes, start: i64, stop: i64) -> bool:
        """Whether one of the names stands between two places."""
        length = stop - start
        if length > _LONGEST or not self._lengths >> length & 1:
            return False
        return data[start:stop].lower() in self._names
