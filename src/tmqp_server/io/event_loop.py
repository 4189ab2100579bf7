"""Owns what is asked of the event loop itself, beside anyio: its clock, and which one it is.

anyio looks for the event loop at every call.  Where that is done for every chunk of bytes it costs
as much as working the chunk off, so it is asked once.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
from collections.abc import Callable

import anyio

__all__ = ["asyncio_loop", "clock", "context_for_callbacks"]

#: It comes with trio; without it there is only asyncio.
_sniffio = importlib.import_module("sniffio") if importlib.util.find_spec("sniffio") else None


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The running asyncio event loop (or uvloop's); None on trio, its guest mode included.

    :raises RuntimeError: when no event loop runs.
    """
    if _sniffio is not None and _sniffio.current_async_library() != "asyncio":
        return None
    return asyncio.get_running_loop()


def clock() -> Callable[[], float]:
    """What :func:`anyio.current_time` would call."""
    loop = asyncio_loop()
    return anyio.current_time if loop is None else loop.time


def context_for_callbacks() -> contextvars.Context:
    """A context in which a callback of asyncio's loop, which runs in no task, may call anyio."""
    context = contextvars.copy_context()
    if _sniffio is not None:
        context.run(_sniffio.current_async_library_cvar.set, "asyncio")
    return context
