"""The door of NSQ's TCP protocol V2."""

from __future__ import annotations

from typing import Final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.measuring import MeasuringSession
from tmqp_server.doors.nsq.message import DOOR, NUMBER, NsqBodies, NsqRun
from tmqp_server.doors.nsq.session import NsqSession
from tmqp_server.doors.port import QueuesOnly
from tmqp_server.engine.effects import Deliver, DeliverRun
from tmqp_wires.nsq.writing import message_frame, retried

__all__ = ["NsqDoor"]

_NS_PER_MS: Final = 1_000_000


class NsqDoor(QueuesOnly):
    """NSQ, TCP.

    :param letters: reads messages that arrived through doors of other protocols.
    """

    name = DOOR
    number = NUMBER

    def __init__(self, context: NsqContext, letters: Letters | None = None) -> None:
        super().__init__(NsqBodies())
        self.context = context
        self.letters = Letters() if letters is None else letters

    def open(self, session: int, now: float) -> NsqSession:
        """Open a session for a new connection."""
        self.context.time_s = now
        if self.context.world.latencies.measures:
            return MeasuringSession(self.context, session, now)
        return NsqSession(self.context, session, now)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The frame of the message with the number of this attempt; for another protocol's message,
        a frame with the body of its letter."""
        message = effect.message
        wire = message.wire
        attempt = effect.attempt
        if isinstance(wire, bytes) and message.producer.door == DOOR:
            return wire if attempt == 1 else retried(wire, attempt)
        letter = self.letters.of(message, effect.channel)
        name = self.context.name_of_foreign(effect)
        timestamp_ns = letter.timestamp_ms * _NS_PER_MS or self.context.unix_ns(self.context.time_s)
        return message_frame(timestamp_ns, attempt, name, letter.body)

    def encode_run(self, effect: DeliverRun) -> bytes:
        """The frames of a run."""
        run = effect.run.wire
        if not isinstance(run, NsqRun):
            return b"".join([self.encode_delivery(each) for each in effect.deliveries()])
        if effect.is_whole():
            return b"".join(run.frames)
        return b"".join(run.frames[effect.start : effect.stop : effect.step])
