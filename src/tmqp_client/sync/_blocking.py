"""Calls from threads into the event loop of a blocking client, which runs in a separate thread.

Every blocking call runs its async form in that loop, and the calling thread waits.  An exception in
the calling thread meanwhile (Ctrl-C above all) cancels the call.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import anyio.from_thread
import anyio.to_thread

from tmqp_client.errors import ClientClosed

__all__ = ["Blocking", "Loop", "in_thread"]

_T = TypeVar("_T")
_A = TypeVar("_A")
#: The number of items taken from an iterable at a time.
_PIECE: Final = 64


class Loop:
    """An event loop in a thread of its own.

    :param backend: ``asyncio`` or ``trio``.
    """

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._manager: Any = None
        self._block: Any = None
        self._portal: anyio.from_thread.BlockingPortal | None = None

    def start(self) -> None:
        """Start the loop, once.

        :raises ClientClosed: if it was started before.
        """
        if self._manager is not None:
            raise ClientClosed("a client is opened once; connect() makes another")
        self._manager = anyio.from_thread.start_blocking_portal(self._backend)
        self._portal = self._manager.__enter__()

    def stop(self, error: BaseException | None) -> None:
        """Stop the loop; running calls are cancelled if there was an error."""
        self._portal = None
        self._manager.__exit__(None if error is None else type(error), error, None)

    @property
    def running(self) -> bool:
        """Whether the loop was started and not stopped."""
        return self._portal is not None

    def enter(self, manager: AbstractAsyncContextManager[Any]) -> None:
        """Enter a block that one task must enter and leave."""
        assert self._portal is not None, "it has begun"
        self._block = self._portal.wrap_async_context_manager(manager)
        self._block.__enter__()

    def leave(self, error: BaseException | None) -> None:
        """Leave the block that :meth:`enter` entered."""
        # Ctrl-C concerns only this thread, not the loop.
        shown = error if isinstance(error, Exception) else None
        self._block.__exit__(None if shown is None else type(shown), shown, None)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function, async or not, in the loop; wait for its result and return it."""
        portal = self._portal
        if portal is None:
            raise ClientClosed("the client is not connected: use it in 'with'")
        future = portal.start_task_soon(functools.partial(function, *arguments, **named))
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("the client was closed") from None
        except BaseException:
            future.cancel()
            raise


class Blocking(Generic[_A]):
    """The blocking form of an async object; its calls run in the loop."""

    def __init__(self, wrapped: _A, loop: Loop, wrap: Callable[[Any, Loop], Any]) -> None:
        self._wrapped = wrapped
        self._loop = loop
        self._wrap_with = wrap

    def _call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        arguments = tuple(
            each._wrapped if isinstance(each, Blocking) else each for each in arguments
        )
        return self._wrap_with(self._loop.call(function, *arguments, **named), self._loop)

    def _wrap(self, value: Any) -> Any:
        return self._wrap_with(value, self._loop)

    def _next(self) -> Any:
        """Return the next item of an async iterator."""
        try:
            return self._call(self._wrapped.__anext__)  # type: ignore[attr-defined]
        except StopAsyncIteration:
            raise StopIteration from None

    def __repr__(self) -> str:
        return repr(self._wrapped)


async def in_thread(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield the items of an iterable, which are taken in a thread because the iterable may
    block."""
    iterator = iter(items)
    while True:
        piece = await anyio.to_thread.run_sync(
            lambda: list(islice(iterator, _PIECE)), abandon_on_cancel=True
        )
        for item in piece:
            yield item
        if len(piece) < _PIECE:
            return
