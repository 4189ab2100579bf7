"""The nodes of a parsed selector, and their values for a message.

A value is a text, a number, true or false, or None for unknown: the value of whatever a message
does not have.  As in SQL, logic has three values: a comparison with None is unknown, NOT unknown is
unknown, and a selector accepts a message only if it is true.  As in ActiveMQ, values of different
kinds are unequal and have no order; texts, true and false can only be equal or unequal.
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
        """The node's value for a message."""
        raise NotImplementedError


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Literal(Node):
    """A literal value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def of(self, lookup: Lookup) -> Value:
        """The value."""
        return self.value


class Identifier(Node):
    """The value that a message has under a name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, lookup: Lookup) -> Value:
        """The message's value; None if it has none."""
        return lookup(self.name)


class Not(Node):
    """NOT."""

    __slots__ = ("inner",)

    def __init__(self, inner: Node) -> None:
        self.inner = inner

    def of(self, lookup: Lookup) -> Value:
        """The opposite of true or false; unknown for any other value."""
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
        """The deciding value if one part has it; else unknown if one part is unknown or not a truth
        value."""
        found: Value = not self.decides
        for part in self.parts:
            value = part.of(lookup)
            if value is self.decides:
                return value
            if value is not (not self.decides):
                found = None
        return found


class And(_Junction):
    """AND: false if one part is false."""

    __slots__ = ()

    def __init__(self, parts: list[Node]) -> None:
        super().__init__(parts, decides=False)


class Or(_Junction):
    """OR: true if one part is true."""

    __slots__ = ()

    def __init__(self, parts: list[Node]) -> None:
        super().__init__(parts, decides=True)


class Compared(Node):
    """A comparison of two values by one of ``= <> < > <= >=``.

    :param converts: convert a text that is compared with a number, or with true or false, if
        possible.
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
    """Convert a text for a comparison with another kind of value: to a number if it reads as one,
    or to whether it reads ``true``."""
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
    """The result of a comparison; None for unknown."""
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
    """BETWEEN, as two comparisons; the bounds are included."""

    __slots__ = ("both",)

    def __init__(self, inner: Node, low: Node, high: Node, *, converts: bool = False) -> None:
        above = Compared(inner, ">=", low, converts=converts)
        below = Compared(inner, "<=", high, converts=converts)
        self.both = And([above, below])

    def of(self, lookup: Lookup) -> Value:
        """Whether both comparisons hold."""
        return self.both.of(lookup)


class In(Node):
    """IN, a list of texts."""

    __slots__ = ("inner", "texts")

    def __init__(self, inner: Node, texts: frozenset[str]) -> None:
        self.inner = inner
        self.texts = texts

    def of(self, lookup: Lookup) -> Value:
        """Whether the value is in the list."""
        value = self.inner.of(lookup)
        if value is None:
            return None
        return isinstance(value, str) and value in self.texts


class IsNull(Node):
    """IS NULL, whose value is never unknown."""

    __slots__ = ("inner",)

    def __init__(self, inner: Node) -> None:
        self.inner = inner

    def of(self, lookup: Lookup) -> Value:
        """Whether the value is unknown."""
        return self.inner.of(lookup) is None


class Like(Node):
    """LIKE: ``%`` stands for any text, ``_`` for one character.

    :param segments: the parts between the percent signs; None in one is any character.
    """

    __slots__ = ("inner", "segments")

    def __init__(self, inner: Node, segments: list[list[str | None]]) -> None:
        self.inner = inner
        self.segments = segments

    def of(self, lookup: Lookup) -> Value:
        """Whether the value is a text that matches the pattern."""
        value = self.inner.of(lookup)
        if value is None:
            return None
        return isinstance(value, str) and self._matches(value)

    def _matches(self, text: str) -> bool:
        """Match each segment at its first occurrence, which leaves the most text for the following
        ones."""
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
    """A number with a sign."""

    __slots__ = ("inner", "negative")

    def __init__(self, inner: Node, *, negative: bool) -> None:
        self.inner = inner
        self.negative = negative

    def of(self, lookup: Lookup) -> Value:
        """The number; unknown if the value is not a number."""
        value = self.inner.of(lookup)
        if value is None or isinstance(value, (str, bool)):
            return None
        return -value if self.negative else value


class Counted(Node):
    """An operation on two numbers, one of ``+ - * /``."""

    __slots__ = ("left", "operator", "right")

    def __init__(self, left: Node, operator: str, right: Node) -> None:
        self.left = left
        self.operator = operator
        self.right = right

    def of(self, lookup: Lookup) -> Value:
        """The number; unknown for operands that are not numbers, a division by 0, or a result out
        of range."""
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
