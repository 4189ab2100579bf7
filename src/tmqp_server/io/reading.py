"""One chunk of bytes, from a socket that the event loop watches to the turn.

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

#: What a reader does next, without the bit beside it.
STEP: Final = ~EFFECTS


@final
class Reading:
    """Reads one connection for as long as its transport is watched.

    :param number: of its session.
    :param now: the time, as the event loop tells it.
    :param attend: has the effects of a turn carried out.
    :param on_fault: is told what failed here, which is a bug.
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
        """The event loop says that bytes may have come; called again as long as they have."""
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
