"""Selectors of JMS: conditions about messages, in a subset of SQL-92.

:func:`read_selector` parses a selector, :class:`SelectorFilter` is the filter made from it.
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
