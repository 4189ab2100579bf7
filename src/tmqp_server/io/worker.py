"""The thread for blocking work: one piece of work after another, outside the event loop.

Theory of operation.  When a piece is done, the thread makes the event loop call the caller's
function directly, without waking a task.  That takes a third of the time of a pool of threads,
which matters if each piece is a sync of some hundred microseconds and a client waits for it.

The thread waits for work by reading from a pipe, not for a lock.  Writing to the pipe releases the
interpreter, so the thread can begin immediately.  With a lock, its owner would keep the
interpreter: on a machine with one processor, the thread would wake up only to sleep again.

The thread is a daemon: if it never returns from the disk, the server can still end.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from tmqp_server.io.event_loop import thread_caller

__all__ = ["Done", "Worker"]

#: Called in the event loop with the exception of the work, or None.
Done: TypeAlias = Callable[[BaseException | None], None]
#: None ends the thread.
_Piece: TypeAlias = tuple[Callable[[], object], Done] | None


class Worker:
    """A thread that works for one event loop: that of the first :meth:`give`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pieces: deque[_Piece] = deque()
        #: The pipe into which a byte is written for each piece; -1 without a thread.
        self._bell = -1

    def give(self, work: Callable[[], object], done: Done) -> None:
        """Run blocking work, after the earlier pieces.

        :param done: called in the event loop afterwards, unless the loop has ended; it must not
            raise.
        """
        if self._bell < 0:
            waits, self._bell = os.pipe()
            run = threading.Thread(
                target=_run,
                args=(self._pieces, waits, self._bell, thread_caller()),
                name=self._name,
                daemon=True,
            )
            run.start()
        self._put((work, done))

    def stop(self) -> None:
        """Let the thread end when its work is done; later work gets another thread."""
        if self._bell >= 0:
            self._put(None)
            self._pieces = deque()
            self._bell = -1

    def _put(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        os.write(self._bell, b"!")


def _run(
    pieces: deque[_Piece],
    waits: int,
    bell: int,
    call: Callable[[Callable[[], None]], object],
) -> None:
    while os.read(waits, 1) and (piece := pieces.popleft()) is not None:
        work, done = piece
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - who gave the work is told
            failure = error
        with suppress(RuntimeError):  # the loop has ended
            call(partial(done, failure))
        del piece, work, done, failure  # while this waits, nothing is held
    os.close(waits)
    os.close(bell)  # no more work will come
