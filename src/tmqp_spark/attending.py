"""Answers the broker's pings while a task waits for its rows.

Theory of operation.  A broker disconnects a client that answers none of its pings, and a task that
waits for rows answers none: its rows may come from a stage that needs minutes for each batch.  Then
its transaction would be lost at every attempt.  So a thread serves the connection while the task
waits for the next batch, and only then, because the code that uses the connection holds the lock.
If the thread finds the connection broken, the task gets the error with its next batch.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from typing import Any, Final, Protocol

from tmqp_spark.errors import ConnectionBroken

__all__ = ["attended"]

#: Seconds between two checks, well below any interval between pings.
_LOOK_S: Final = 0.5


class _Tended(Protocol):
    """A connection that can process received bytes without waiting."""

    def tend(self) -> None:
        """Process received bytes, and answer pings.

        :raises ConnectionBroken: if the connection is lost.
        """


class _Attendant:
    """A thread that serves a connection while no other code uses it."""

    def __init__(self, link: _Tended) -> None:
        self._link = link
        self._over = threading.Event()
        self.working = threading.Lock()
        self.error: ConnectionBroken | None = None
        self._thread = threading.Thread(target=self._run, name="tmqp-attendant", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self.error is None and not self._over.wait(_LOOK_S):
            if not self.working.acquire(blocking=False):
                continue
            try:
                self._link.tend()
            except ConnectionBroken as error:
                self.error = error
            finally:
                self.working.release()

    def end(self) -> None:
        """Stop serving the connection."""
        self._over.set()
        self._thread.join()


def attended(link: _Tended, batches: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the same batches; the connection is served while the next one is awaited.

    :raises ConnectionBroken: before a batch, if the connection was lost meanwhile.
    """
    source = iter(batches)
    attendant = _Attendant(link)
    try:
        while True:
            # The thread may use the connection until the next batch arrives.
            batch = next(source, None)
            with attendant.working:
                if attendant.error is not None:
                    raise attendant.error
                if batch is None:
                    return
                yield batch
    finally:
        attendant.end()
