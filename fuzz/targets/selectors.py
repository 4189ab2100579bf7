"""The fuzz target of selectors, the conditions of JMS and STOMP."""

from __future__ import annotations

from typing import Final

from tmqp.testing import Seeded
from tmqp_server.doors.selecting import MAX_FILTER_BYTES, FilterError
from tmqp_server.doors.selector import read_selector
from tmqp_server.doors.selector.nodes import Node, Value

__all__ = ["good_selector", "selector"]

#: What messages say: nothing, or something of each kind.
_SAID: Final[tuple[dict[str, Value], ...]] = (
    {},
    {"a": 1, "b": -2.5, "s": "text", "yes": True},
    {"a": "1", "b": "x'y", "s": "", "yes": False},
    {"a": 2**63, "b": float("inf"), "s": "100%_", "yes": None},
)
_OPERANDS: Final = ("a", "b", "s", "yes", "missing", "1", "-2.5e1", "'te''xt'", "TRUE", "0x1F")
_OPERATORS: Final = ("=", "<>", "<", ">=", "+", "-", "*", "/", "AND", "OR", "and not")
_TAILS: Final = (
    " IS NULL", " is not null", " IN ('a', 'text')", " NOT LIKE 't_x%' ESCAPE '_'",
    " BETWEEN -1 AND a + 1", "",
)  # fmt: skip


def selector(data: bytes) -> None:
    """A selector of any text: it is read, or refused with a reason; what it says of a message is
    true, false or unknown, the same each time, and never an error."""
    text = data[1:].decode("utf-8", "replace")
    converts = data[:1] > b"\x7f"
    found = _read(text, converts=converts)
    if found is None:
        return
    assert len(text.encode()) <= MAX_FILTER_BYTES, "a text that is too long was read"
    again = _read(f" ({text}) ", converts=converts) or found  # which may be too long, or too deep
    for said in _SAID:
        value = found.of(said.get)
        assert value is None or isinstance(value, (bool, int, float, str)), "no value of SQL"
        assert repr(value) == repr(found.of(said.get)), "it says something else the second time"
        assert repr(value) == repr(again.of(said.get)), "parentheses change what it says"


def _read(text: str, *, converts: bool) -> Node | None:
    """A selector; None when it is refused."""
    try:
        return read_selector(text, converts=converts)
    except FilterError:
        return None


def good_selector(draw: Seeded) -> bytes:
    """A selector, some of which make no sense."""
    text = _OPERANDS[draw.below(len(_OPERANDS))]
    for _ in range(draw.below(6)):
        operator = _OPERATORS[draw.below(len(_OPERATORS))]
        operand = _OPERANDS[draw.below(len(_OPERANDS))]
        text = f"{text} {operator} {operand}{_TAILS[draw.below(len(_TAILS))]}"
        if draw.one_in(3):
            text = f"({text})"
        if draw.one_in(5):
            text = f"NOT {text}"
    return text.encode()
