"""The loggers as they were, for tests in which a server sets them up."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

__all__ = ["root"]


@pytest.fixture(autouse=True)
def root() -> Iterator[None]:
    """The loggers are as they were, afterwards; autouse in whatever module imports it."""
    found = logging.getLogger()
    handlers, level = found.handlers[:], found.level
    yield
    found.handlers[:] = handlers
    found.setLevel(level)
