"""The door of ZeroMQ: one port for sockets of every type.

To each socket, the server presents itself as the matching type: as a PULL socket to a PUSH socket
and as an XPUB socket to a SUB socket.  An endpoint may also have a fixed type.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.letter_frames import letter_of_frame
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.doors.zmtp.context import ZmtpContext
from tmqp_server.doors.zmtp.keys import EndpointKeys
from tmqp_server.doors.zmtp.message import (
    DOOR,
    NUMBER,
    ZmtpBodies,
    ZmtpReply,
    ZmtpRun,
    frames_of,
)
from tmqp_server.doors.zmtp.options import ZmtpLimits, ZmtpOptions
from tmqp_server.doors.zmtp.session import ZmtpSession
from tmqp_server.engine.effects import Deliver, DeliverRun, Forward

__all__ = ["ZmtpDoor"]

#: The longest name of what was asked, in the two bytes before it.
_MOST_NAME: Final = 0xFFFF


@final
class ZmtpDoor(QueuesOnly):
    """ZeroMQ.

    :param new_id: makes the ids of messages and clients.
    :param letters: reads messages that arrived through doors of other protocols.
    :param names: turns names in options into channels.
    :param keys: the keys of CURVE, None with another mechanism.
    :param shared: the context of another door, which replaces all the other parameters.
    """

    name = DOOR
    number = NUMBER

    def __init__(
        self,
        new_id: IdSource,
        limits: ZmtpLimits | None = None,
        options: ZmtpOptions | None = None,
        letters: Letters | None = None,
        names: DoorNames | None = None,
        keys: EndpointKeys | None = None,
        *,
        shared: ZmtpContext | None = None,
    ) -> None:
        super().__init__(ZmtpBodies())
        self.per_session = self.own_runs = True
        self.context = shared or ZmtpContext(
            new_id,
            limits or ZmtpLimits(),
            options or ZmtpOptions(),
            Letters() if letters is None else letters,
            DoorNames() if names is None else names,
            keys,
        )
        self.letters = self.context.letters
        self.config = self.context.config

    def open(self, session: int, now: float) -> ZmtpSession:
        """Open a session for a new connection."""
        return ZmtpSession(self.context, self.config, session, now)

    def dialler(self) -> ZmtpDoor:
        """A door with the same context, for connections that the server makes."""
        if self.context.calling is self.config:
            return self
        found = ZmtpDoor(self.context.new_id, shared=self.context)
        found.config = self.context.calling
        return found

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The frames, without an envelope."""
        return self.context.frames_of(effect)

    def encode_run(self, effect: DeliverRun) -> bytes:
        """The frames of all messages, without envelopes."""
        wire = effect.run.wire
        if isinstance(wire, ZmtpRun):
            return b"".join(wire.some(effect.start, effect.step, effect.stop))
        return super().encode_run(effect)

    def encode_forward(self, effect: Forward) -> bytes:
        """A reply: the id of its request after the id's length, and the frames."""
        wire = effect.wire
        if isinstance(wire, ZmtpReply):
            asked, raw = wire.asked, wire.raw
        else:
            letter = letter_of_frame(self.letters.frame_forwarded(effect))
            asked, raw = letter.correlation_id, frames_of(letter)
        name = asked.encode()[:_MOST_NAME]
        return len(name).to_bytes(2, "big") + name + raw
