"""The cases for clients, one module for each group."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance.cases import Case

__all__ = ["CLIENT_CASES"]

#: Every case for clients, in the order of the groups.
CLIENT_CASES: Final[tuple[Case, ...]] = ()
