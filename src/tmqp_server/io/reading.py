"""Passes chunks of bytes to the turn, from sockets that the event loop watches.

Compiled, because it runs for each chunk; :class:`~tmqp_server.io.connection.Connection` does what
happens less often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from tmqp_server.io.transport import Transport
from tmqp_server.shell.steps import EFFECTS
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import why_broken

__all__ = ["STEP", "Reading"]

#: What a reader does next, without the bit ``EFFECTS``.
STEP: Final = ~EFFECTS


@final
class Reading:
    """Reads one connection while its transport is watched.

    :param number: the number of its session.
    :param now: returns the event loop's time.
    :param attend: carries out the effects of a turn.
    :param on_fault: gets an exception that was raised here, which is a bug.
    """

    __slots__ = ("_attend", "_now", "_number", "_on_fault", "_transport", "_turn")

    def __init__(
        self,
        number: int,
        transport: Transport,
        turn: Turn,
        now: Callable[[], float],
        attend: Callable[[], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._number = number
        self._transport = transport
        self._turn = turn
        self._now = now
        self._attend = attend
        self._on_fault = on_fault

    def readable(self) -> None:
        """Read and process a chunk; the event loop calls this whenever bytes may have arrived."""
        try:
            try:
                data = self._transport.receive_now()
                if data is None:
                    return
            except OSError as error:
                step = self._turn.broken(self._number, why_broken(error), self._now())
            else:
                step = self._turn.received(self._number, data, self._now())
            if step:
                if step & STEP:
                    self._transport.unwatch()
                if step & EFFECTS:
                    self._attend()
        except Exception as error:  # noqa: BLE001 - a bug; it must not reach the event loop
            self._on_fault(error)
