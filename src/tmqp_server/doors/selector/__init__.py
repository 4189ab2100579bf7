"""Selectors of JMS: a condition in a subset of SQL-92 about what a message says.

:func:`read_selector` reads one, :class:`SelectorFilter` is the filter that it makes.
"""

from __future__ import annotations

from tmqp_server.doors.selector.filter import (
    SELECTORS,
    SelectorFilter,
    language_of,
    selector_filter,
)
from tmqp_server.doors.selector.grammar import read_selector
from tmqp_server.doors.selector.no_local import NoLocal

__all__ = [
    "SELECTORS",
    "NoLocal",
    "SelectorFilter",
    "language_of",
    "read_selector",
    "selector_filter",
]
