"""Waiting for what no event tells."""

from __future__ import annotations

from collections.abc import Callable

import anyio

__all__ = ["until"]

#: No test waits longer for one thing.
_MOST_S = 60


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so.

    :raises TimeoutError: when it never is.
    """
    with anyio.fail_after(_MOST_S):
        while not is_so():  # noqa: ASYNC110 - that is what this is for
            await anyio.sleep(0.002)
