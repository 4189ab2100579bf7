"""Filters of lists, such as ``name:ord* and waiting>1000``.

Up to eight terms, joined by ``and``.  A term is a field, ``:`` and a pattern with stars (F53), or a
field, one of ``= != < <= > >=`` and a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from tmqp_server.doors.http.messages import BadRequest
from tmqp_server.engine.model.channel_names import matches

__all__ = ["Condition", "Fields", "parse_filter"]

_MOST_TERMS: Final = 8
_MOST_CHARACTERS: Final = 512
_TERM: Final = re.compile(r"([a-z_]+)(:|!=|<=|>=|=|<|>)(.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?")
_TESTS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}

#: The fields of a list, each with the function that gets it from an item; text or number.
Fields = Mapping[str, Callable[[object], str | float]]


@final
class Condition:
    """One filter: whether an item passes."""

    __slots__ = ("_tests", "names")

    def __init__(self, tests: Sequence[Callable[[object], bool]], names: str) -> None:
        self._tests = tests
        #: A pattern for the name, by which the broker may filter; empty for none.
        self.names = names

    def accepts(self, item: object) -> bool:
        """Whether an item passes all terms."""
        return all([test(item) for test in self._tests])


def parse_filter(text: str, fields: Fields, name: str) -> Condition:
    """Read a filter.

    :param name: the field that the broker itself can filter by: the name.
    :raises BadRequest: when the text is not a filter.
    """
    if len(text) > _MOST_CHARACTERS:
        raise BadRequest(400, f"filter has at most {_MOST_CHARACTERS} characters")
    terms = [each for each in re.split(r"\s+and\s+", text.strip()) if each]
    if len(terms) > _MOST_TERMS:
        raise BadRequest(400, f"filter has at most {_MOST_TERMS} terms")
    tests: list[Callable[[object], bool]] = []
    names = ""
    for term in terms:
        found = _TERM.fullmatch(term)
        if found is None or found[1] not in fields:
            known = ", ".join(fields)
            raise BadRequest(400, f"filter: {term[:64]!r} is not a term; the fields are {known}")
        field, sign, value = found[1], found[2], found[3].strip()
        if sign == ":" and field == name and not names:
            names = value
        tests.append(_test(fields[field], sign, value))
    return Condition(tests, names)


def _test(find: Callable[[object], str | float], sign: str, value: str) -> Callable[[object], bool]:
    if sign == ":":
        return lambda item: matches(str(find(item)), value)
    compare = _TESTS[sign]
    number = float(value) if _NUMBER.fullmatch(value) else None

    def test(item: object) -> bool:
        found = find(item)
        if isinstance(found, str):
            if sign in ("=", "!="):
                return (found == value) == (sign == "=")
            return False
        return number is not None and compare(found, number)

    return test
