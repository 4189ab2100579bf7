"""Functions of the event loop itself, without anyio: its clock, and which loop it is.

anyio looks up the event loop at every call.  If that were done for every chunk of bytes, it would
cost as much as processing the chunk, so it is done once.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tmqp_server.config import ConfigError
from tmqp_server.io.direct_loop import DirectLoop, direct_loop

__all__ = [
    "BACKENDS",
    "asyncio_loop",
    "backend_name",
    "clock",
    "context_for_callbacks",
    "how_to_run",
    "thread_caller",
]

#: The event loops that a server may run on.
BACKENDS = ("asyncio", "uvloop", "trio")

#: It is installed with trio; without it, there is only asyncio.
_sniffio = importlib.import_module("sniffio") if importlib.util.find_spec("sniffio") else None


def how_to_run(backend: str) -> dict[str, Any]:
    """The arguments with which :func:`anyio.run` runs on one of ``BACKENDS``.

    :raises ConfigError: when the backend is not installed.
    """
    package = "uvloop" if backend == "uvloop" else "trio" if backend == "trio" else "asyncio"
    if importlib.util.find_spec(package) is None:
        extra = ": pip install 'tmqp[speed]'" if backend == "uvloop" else ""
        raise ConfigError(f"the event loop {backend} is not installed{extra}")
    if backend == "uvloop":
        return {"backend": "asyncio", "backend_options": {"use_uvloop": True}}
    if backend == "asyncio":
        return {"backend": "asyncio", "backend_options": {"loop_factory": direct_loop}}
    return {"backend": backend}


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The running asyncio event loop (or uvloop's); None on trio, its guest mode included.

    :raises RuntimeError: when no event loop runs.
    """
    if _sniffio is not None and _sniffio.current_async_library() != "asyncio":
        return None
    return asyncio.get_running_loop()


def backend_name() -> str:
    """Which of ``BACKENDS`` runs.

    :raises RuntimeError: when no event loop runs.
    """
    loop = asyncio_loop()
    if loop is None:
        return "trio"
    return "uvloop" if type(loop).__module__.partition(".")[0] == "uvloop" else "asyncio"


def clock() -> Callable[[], float]:
    """The function that :func:`anyio.current_time` would call."""
    loop = asyncio_loop()
    if loop is None:
        current_time: Callable[[], float] = importlib.import_module("trio").current_time
        return current_time
    # What asyncio's loop.time() calls; some loops have another.
    return time.monotonic if isinstance(loop, DirectLoop) else loop.time


def thread_caller() -> Callable[[Callable[[], None]], object]:
    """Return a function with which other threads call a function in the running event loop, where
    it may use anyio; it raises ``RuntimeError`` after the loop has ended."""
    loop = asyncio_loop()
    if loop is None:
        token = importlib.import_module("trio").lowlevel.current_trio_token()
        run_soon: Callable[[Callable[[], None]], object] = token.run_sync_soon
        return run_soon
    if isinstance(loop, DirectLoop):
        loop.watch_bell()
        return loop.call_directly_threadsafe
    return partial(loop.call_soon_threadsafe, context=context_for_callbacks())


def context_for_callbacks() -> contextvars.Context:
    """A context in which callbacks of asyncio's loop, which run in no task, may call anyio."""
    context = contextvars.copy_context()
    if _sniffio is not None:
        context.run(_sniffio.current_async_library_cvar.set, "asyncio")
    return context
