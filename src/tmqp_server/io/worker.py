"""The thread that does what blocks: one piece of work after another, away from the event loop.

Theory of operation.  Work goes to the thread by a queue; when a piece is done the thread has the
event loop called once.  That is half of what a pool of threads costs, which matters where each
piece is a sync of some hundred microseconds.

The thread is a daemon: one that never comes back from the disk keeps no server from its end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

import anyio

__all__ = ["Worker", "caller"]

_T = TypeVar("_T")


class _Piece(Generic[_T]):
    """A piece of work, and what came of it."""

    __slots__ = ("done", "failure", "result", "work")

    def __init__(self, work: Callable[[], _T]) -> None:
        self.work = work
        self.done = anyio.Event()
        self.result: _T | None = None
        self.failure: BaseException | None = None

    def finished(self) -> None:
        """Called in the event loop."""
        self.done.set()


class Worker:
    """A thread for an event loop: that of the first :meth:`do`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pieces: SimpleQueue[_Piece[object] | None] = SimpleQueue()
        self._is_started = False

    async def do(self, work: Callable[[], _T]) -> _T:
        """Do something that blocks, behind what was given before.

        When this is cancelled the work is done all the same, and nobody hears of it.

        :raises BaseException: what the work raises.
        """
        if not self._is_started:
            self._is_started = True
            run = threading.Thread(
                target=_run, args=(self._pieces, caller()), name=self._name, daemon=True
            )
            run.start()
        piece: _Piece[_T] = _Piece(work)
        self._pieces.put(piece)  # type: ignore[arg-type]  # what comes of it is for us alone
        await piece.done.wait()
        if piece.failure is not None:
            try:
                raise piece.failure
            finally:
                piece.failure = None  # else it and this frame hold each other
        return piece.result  # type: ignore[return-value]  # it is done

    def stop(self) -> None:
        """Let the thread end when its work is done."""
        self._pieces.put(None)


def _run(
    pieces: SimpleQueue[_Piece[object] | None], call: Callable[[Callable[[], None]], object]
) -> None:
    while (piece := pieces.get()) is not None:
        try:
            piece.result = piece.work()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            piece.failure = error
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            call(piece.finished)


def caller() -> Callable[[Callable[[], None]], object]:
    """What another thread calls to have something called in this event loop."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio  # noqa: PLC0415 - there only where it is used

        return trio.lowlevel.current_trio_token().run_sync_soon
