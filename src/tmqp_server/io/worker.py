"""The thread that does what blocks: one piece of work after another, away from the event loop.

Theory of operation.  Work goes to the thread by a queue; when a piece is done the thread has the
event loop call whoever gave it, straight and not by waking a task that waits.  That is a third of
what a pool of threads costs, which matters where each piece is a sync of some hundred microseconds
and a client waits for it.

The thread is a daemon: one that never comes back from the disk keeps no server from its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from tmqp_server.io.event_loop import thread_caller

__all__ = ["Done", "Worker"]

#: Is called in the event loop with what the work has raised.
Done: TypeAlias = Callable[[BaseException | None], None]
_Piece: TypeAlias = tuple[Callable[[], object], Done]


class Worker:
    """A thread for an event loop: that of the first :meth:`give`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._is_started = False

    def give(self, work: Callable[[], object], done: Done) -> None:
        """Do something that blocks, behind what was given before.

        :param done: is called in the event loop then, unless that has ended; it must not raise.
        """
        if not self._is_started:
            self._is_started = True
            run = threading.Thread(
                target=_run, args=(self._pieces, thread_caller()), name=self._name, daemon=True
            )
            run.start()
        self._pieces.put((work, done))

    def stop(self) -> None:
        """Let the thread end when its work is done."""
        self._pieces.put(None)


def _run(pieces: SimpleQueue[_Piece | None], call: Callable[[Callable[[], None]], object]) -> None:
    while (piece := pieces.get()) is not None:
        work, done = piece
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - who gave the work is told
            failure = error
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            call(partial(done, failure))
        del piece, work, done, failure  # while this waits, nothing is held
