"""The parts of a selector, and what they are of a message.

A value is a text, a number, true or false, or None: unknown, as whatever a message does not say.
Logic has three values, as SQL has it: what is compared with None is unknown, NOT of unknown is
unknown, and a selector selects where it is true.  Values of unlike kinds are unequal and in no
order, as ActiveMQ has it; texts, true and false are equal or unequal and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = [
    "And",
    "Between",
    "Compared",
    "Counted",
    "Identifier",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Lookup",
    "Node",
    "Not",
    "Or",
    "Signed",
    "Value",
    "compared",
]

Value: TypeAlias = str | int | float | bool | None
#: What a message says under a name.
Lookup: TypeAlias = Callable[[str], Value]

_EQUAL: Final = "="
_UNEQUAL: Final = "<>"
_LONGEST_NUMBER: Final = 64


class Node:
    """A part of a selector."""

    __slots__ = ()

    def of(self, lookup: Lookup) -> Value:
        """Its value for a message."""
        raise NotImplementedError


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Literal(Node):
    """A value that is written down."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def of(self, lookup: Lookup) -> Value:
        """The value."""
        return self.value


class Identifier(Node):
    """What a message says under a name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, lookup: Lookup) -> Value:
        """What it says, or None."""
        return lookup(self.name)


class Not(Node):
    """NOT."""

    __slots__ = ("inner",)

    def __init__(self, inner: Node) -> None:
        self.inner = inner

    def of(self, lookup: Lookup) -> Value:
        """The contrary; unknown of what is neither true nor false."""
        value = self.inner.of(lookup)
        return not value if isinstance(value, bool) else None


class _Junction(Node):
    """AND or OR of two or more.

    :param decides: the value of one part that is the value of all.
    """

    __slots__ = ("decides", "parts")

    def __init__(self, parts: list[Node], *, decides: bool) -> None:
        self.parts = parts
        self.decides = decides

    def of(self, lookup: Lookup) -> Value:
        """What decides if one part is that, else unknown if one is."""
        found: Value = not self.decides
        for part in self.parts:
            value = part.of(lookup)
            if value is self.decides:
                return value
            if value is not (not self.decides):
                found = None
        return found


class And(_Junction):
    """AND: false if one is."""

    __slots__ = ()

    def __init__(self, parts: list[Node]) -> None:
        super().__init__(parts, decides=False)


class Or(_Junction):
    """OR: true if one is."""

    __slots__ = ()

    def __init__(self, parts: list[Node]) -> None:
        super().__init__(parts, decides=True)


class Compared(Node):
    """Two values and one of ``= <> < > <= >=``.

    :param converts: a text that is compared with a number, or with true or false, counts as one if
        it reads so.
    """

    __slots__ = ("converts", "left", "operator", "right")

    def __init__(self, left: Node, operator: str, right: Node, *, converts: bool = False) -> None:
        self.left = left
        self.operator = operator
        self.right = right
        self.converts = converts

    def of(self, lookup: Lookup) -> Value:
        """Whether the comparison holds."""
        left, right = self.left.of(lookup), self.right.of(lookup)
        if self.converts:
            left, right = _converted(left, right), _converted(right, left)
        return compared(left, self.operator, right)


def _converted(value: Value, other: Value) -> Value:
    """A text as what it is compared with, if that is no text and it reads so."""
    if not isinstance(value, str) or other is None or isinstance(other, str):
        return value
    if isinstance(other, bool):
        return value.lower() == "true"
    if len(value) > _LONGEST_NUMBER:
        return value
    try:
        return int(value) if isinstance(other, int) else float(value)
    except ValueError:
        return value


def compared(left: Value, operator: str, right: Value) -> Value:
    """Whether a comparison holds."""
    if left is None or right is None:
        return None
    if _is_number(left) and _is_number(right):
        assert isinstance(left, (int, float)), "it is a number"
        assert isinstance(right, (int, float)), "it is a number"
        return _ordered(left, operator, right)
    if operator == _UNEQUAL:
        return type(left) is not type(right) or left != right
    return operator == _EQUAL and type(left) is type(right) and left == right


def _ordered(left: float, operator: str, right: float) -> bool:
    if operator == _EQUAL:
        return left == right
    if operator == _UNEQUAL:
        return left != right
    if operator == "<":
        return left < right
    if operator == ">":
        return left > right
    return left <= right if operator == "<=" else left >= right


class Between(Node):
    """BETWEEN, whose bounds count: the two comparisons that it is short for."""

    __slots__ = ("both",)

    def __init__(self, inner: Node, low: Node, high: Node, *, converts: bool = False) -> None:
        above = Compared(inner, ">=", low, converts=converts)
        below = Compared(inner, "<=", high, converts=converts)
        self.both = And([above, below])

    def of(self, lookup: Lookup) -> Value:
        """Whether both hold."""
        return self.both.of(lookup)


class In(Node):
    """IN, a list of texts."""

    __slots__ = ("inner", "texts")

    def __init__(self, inner: Node, texts: frozenset[str]) -> None:
        self.inner = inner
        self.texts = texts

    def of(self, lookup: Lookup) -> Value:
        """Whether it is one of them."""
        value = self.inner.of(lookup)
        if value is None:
            return None
        return isinstance(value, str) and value in self.texts


class IsNull(Node):
    """IS NULL, which is never unknown."""

    __slots__ = ("inner",)

    def __init__(self, inner: Node) -> None:
        self.inner = inner

    def of(self, lookup: Lookup) -> Value:
        """Whether the message does not say it."""
        return self.inner.of(lookup) is None


class Like(Node):
    """LIKE: ``%`` stands for any text, ``_`` for one character.

    :param segments: what stands between the percent signs; None in one is any character.
    """

    __slots__ = ("inner", "segments")

    def __init__(self, inner: Node, segments: list[list[str | None]]) -> None:
        self.inner = inner
        self.segments = segments

    def of(self, lookup: Lookup) -> Value:
        """Whether a text is like that."""
        value = self.inner.of(lookup)
        if value is None:
            return None
        return isinstance(value, str) and self._matches(value)

    def _matches(self, text: str) -> bool:
        """Each segment is taken where it comes first, which leaves most for those behind it."""
        segments = self.segments
        first, last = segments[0], segments[-1]
        if len(segments) == 1:
            return len(text) == len(first) and _stands_at(text, 0, first)
        end = len(text) - len(last)
        if end < len(first) or not _stands_at(text, 0, first) or not _stands_at(text, end, last):
            return False
        at = len(first)
        for segment in segments[1:-1]:
            while at + len(segment) <= end and not _stands_at(text, at, segment):
                at += 1
            if at + len(segment) > end:
                return False
            at += len(segment)
        return True


def _stands_at(text: str, at: int, segment: list[str | None]) -> bool:
    for wanted in segment:
        if wanted is not None and text[at] != wanted:
            return False
        at += 1
    return True


class Signed(Node):
    """A sign before a number."""

    __slots__ = ("inner", "negative")

    def __init__(self, inner: Node, *, negative: bool) -> None:
        self.inner = inner
        self.negative = negative

    def of(self, lookup: Lookup) -> Value:
        """The number; unknown of what is none."""
        value = self.inner.of(lookup)
        if value is None or isinstance(value, (str, bool)):
            return None
        return -value if self.negative else value


class Counted(Node):
    """Two numbers and one of ``+ - * /``."""

    __slots__ = ("left", "operator", "right")

    def __init__(self, left: Node, operator: str, right: Node) -> None:
        self.left = left
        self.operator = operator
        self.right = right

    def of(self, lookup: Lookup) -> Value:
        """The number; unknown of what is none, divided by 0, or too large."""
        left, right = self.left.of(lookup), self.right.of(lookup)
        if left is None or isinstance(left, (str, bool)):
            return None
        if right is None or isinstance(right, (str, bool)):
            return None
        try:
            found = _counted(left, self.operator, right)
            return None if math.isnan(found) else found
        except (OverflowError, ZeroDivisionError):
            return None


def _counted(left: float, operator: str, right: float) -> float:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    return left * right if operator == "*" else left / right
