"""The cases for servers, one module for each group."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance.cases import Case
from tmqp.testing.conformance.servers import preamble

__all__ = ["SERVER_CASES"]

#: Every case for servers, in the order of the groups.
SERVER_CASES: Final[tuple[Case, ...]] = (*preamble.CASES,)
