"""The door of Throttr: its keys are cells, and each of its channels is a channel with a broadcast
queue.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.doors.throttr.context import ThrottrContext
from tmqp_server.doors.throttr.message import DOOR, NUMBER, ThrottrBodies, ThrottrMessage
from tmqp_server.doors.throttr.options import ThrottrLimits, ThrottrOptions
from tmqp_server.doors.throttr.session import ThrottrSession
from tmqp_server.engine.effects import Deliver, Forward
from tmqp_wires.throttr.replies import push_bytes

__all__ = ["ThrottrDoor"]

#: The delivery of a message whose payload is too long for this door.
_UNSAID: Final = b"\0"


@final
class ThrottrDoor(QueuesOnly):
    """Throttr.

    :param new_id: makes the ids of messages, clients and connections.
    :param letters: reads messages that arrived through doors of other protocols.
    :param names: turns Throttr's names of channels into channels and back.
    :param wall_clock_offset_s: what to add to the engine's times for seconds since 1970.
    :param started_s: when the server began, in the engine's time.
    """

    name = DOOR
    number = NUMBER

    def __init__(
        self,
        new_id: IdSource,
        limits: ThrottrLimits | None = None,
        options: ThrottrOptions | None = None,
        letters: Letters | None = None,
        names: DoorNames | None = None,
        wall_clock_offset_s: float = 0.0,
        started_s: float = 0.0,
    ) -> None:
        super().__init__(ThrottrBodies())
        self.per_session = True
        self.letters = Letters() if letters is None else letters
        self.context = ThrottrContext(
            new_id,
            limits or ThrottrLimits(),
            options or ThrottrOptions(),
            DoorNames() if names is None else names,
            wall_clock_offset_s,
            started_s,
        )

    def open(self, session: int, now: float) -> ThrottrSession:
        """Open a session for a new connection."""
        return ThrottrSession(self.context, session, now)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """A push; a byte 0 if the payload is too long for the size of values."""
        message = effect.message
        wire = message.wire
        if isinstance(wire, ThrottrMessage):
            payload = wire.payload
        else:
            payload = self.letters.of(message, effect.channel).body
        return self._push(self.context.names.foreign_name(effect.channel), payload)

    def encode_forward(self, effect: Forward) -> bytes:
        """A message to one client alone; empty for direct messages of other protocols."""
        wire = effect.wire
        if not isinstance(wire, ThrottrMessage):
            return b""
        data = self._push(wire.channel, wire.payload)
        return b"" if data == _UNSAID else data

    def _push(self, channel: bytes, payload: bytes) -> bytes:
        context = self.context
        return push_bytes(context.dialect, channel[:255], payload, context.width) or _UNSAID
