"""The door of goMS: a channel with one broadcast queue for each configured topic."""

from __future__ import annotations

from typing import final

from tmqp_server.doors.goms.context import GomsContext
from tmqp_server.doors.goms.message import DOOR, NUMBER, GomsBodies, GomsMessage, GomsRun, text_of
from tmqp_server.doors.goms.options import GomsLimits, GomsOptions
from tmqp_server.doors.goms.session import GomsSession
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.engine.effects import Deliver, DeliverRun
from tmqp_wires.goms.codec import quoted

__all__ = ["GomsDoor"]


@final
class GomsDoor(QueuesOnly):
    """goMS.

    :param new_id: makes the ids of messages and clients.
    :param letters: reads messages that arrived through doors of other protocols.
    :param names: turns topics into channels and back.
    :param datagrams: whether each chunk and each answer is one datagram.
    """

    name = DOOR
    number = NUMBER

    def __init__(
        self,
        new_id: IdSource,
        limits: GomsLimits | None = None,
        options: GomsOptions | None = None,
        letters: Letters | None = None,
        names: DoorNames | None = None,
        *,
        datagrams: bool = False,
    ) -> None:
        super().__init__(GomsBodies())
        self.per_session = self.own_runs = True
        self.letters = Letters() if letters is None else letters
        self.context = GomsContext(
            new_id,
            limits or GomsLimits(),
            options or GomsOptions(),
            DoorNames() if names is None else names,
            datagrams=datagrams,
        )

    def open(self, session: int, now: float) -> GomsSession:
        """Open a session for a new connection."""
        return GomsSession(self.context, session)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The data as a line, which each session writes in its client's dialect."""
        message = effect.message
        wire = message.wire
        if isinstance(wire, GomsMessage):
            return quoted(wire.data) + b"\n"
        return quoted(text_of(self.letters.of(message, effect.channel).body)) + b"\n"

    def encode_run(self, effect: DeliverRun) -> bytes:
        """The data of each message as a line."""
        wire = effect.run.wire
        if isinstance(wire, GomsRun):
            return wire.lines(effect.start, effect.step, effect.stop)
        return super().encode_run(effect)
