"""The door of Simple MQ: a channel with one queue in round robin for each of its queues."""

from __future__ import annotations

from typing import final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.doors.smq.context import SmqContext
from tmqp_server.doors.smq.message import DOOR, NUMBER, SmqBodies, SmqMessage, SmqRun, line_of
from tmqp_server.doors.smq.options import SmqLimits, SmqOptions
from tmqp_server.doors.smq.session import SmqSession
from tmqp_server.engine.effects import Deliver, DeliverRun

__all__ = ["SmqDoor"]


@final
class SmqDoor(QueuesOnly):
    """Simple MQ.

    :param new_id: makes the ids of messages and clients.
    :param letters: reads messages that arrived through doors of other protocols.
    :param names: turns names of queues into channels and back.
    """

    name = DOOR
    number = NUMBER

    def __init__(
        self,
        new_id: IdSource,
        limits: SmqLimits | None = None,
        options: SmqOptions | None = None,
        letters: Letters | None = None,
        names: DoorNames | None = None,
    ) -> None:
        super().__init__(SmqBodies())
        self.per_session = self.own_runs = True
        self.letters = Letters() if letters is None else letters
        self.context = SmqContext(
            new_id,
            limits or SmqLimits(),
            options or SmqOptions(),
            DoorNames() if names is None else names,
        )

    def open(self, session: int, now: float) -> SmqSession:
        """Open a session for a new connection."""
        return SmqSession(self.context, session)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The body and a newline (facts B2)."""
        message = effect.message
        wire = message.wire
        if isinstance(wire, SmqMessage):
            return wire.body + b"\n"
        return line_of(self.letters.of(message, effect.channel).body)

    def encode_run(self, effect: DeliverRun) -> bytes:
        """The lines of a run."""
        wire = effect.run.wire
        if isinstance(wire, SmqRun):
            return wire.lines(effect.start, effect.step, effect.stop)
        return super().encode_run(effect)
