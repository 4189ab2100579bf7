"""The door of OpenWire, versions 9 to 12."""

from __future__ import annotations

from typing import final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.openwire.advising import news_of
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import DOOR, NUMBER, OpenwireBodies
from tmqp_server.doors.openwire.options import OpenwireLimits, OpenwireOptions
from tmqp_server.doors.openwire.session import OpenwireSession
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.doors.rewriting import frame_for_node
from tmqp_server.engine.commands import Command, Push
from tmqp_server.engine.effects import Deliver, Inform

__all__ = ["OpenwireDoor"]


@final
class OpenwireDoor(QueuesOnly):
    """OpenWire.

    :param new_id: makes unique ids for this door and its connections.
    :param letters: reads messages that arrived through doors of other protocols.
    :param names: turns destinations into channels.
    :param durable: whether new queues are durable.
    :param done_confirms: whether a message of a queue is confirmed as soon as its consumer has
        acknowledged it, even if it is not on disk yet.
    """

    name = DOOR
    number = NUMBER

    def __init__(
        self,
        new_id: IdSource,
        limits: OpenwireLimits | None = None,
        options: OpenwireOptions | None = None,
        letters: Letters | None = None,
        names: DoorNames | None = None,
        wall_clock_offset_s: float = 0.0,
        *,
        durable: bool = False,
        done_confirms: bool = False,
    ) -> None:
        super().__init__(OpenwireBodies())
        self.per_session = True
        self.context = OpenwireContext(
            new_id,
            limits or OpenwireLimits(),
            options or OpenwireOptions(),
            Letters() if letters is None else letters,
            DoorNames() if names is None else names,
            wall_clock_offset_s,
            durable=durable,
            done_confirms=done_confirms,
        )

    def open(self, session: int, now: float) -> OpenwireSession:
        """Open a session for a new connection."""
        return OpenwireSession(self.context, session, now)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The fields of a message, to which each session adds its own."""
        return self.context.kept_of(effect.message, effect.channel).raw

    def encode_for_node(self, command: Command) -> bytes | None:
        """A push as a TMQP message.  Its expiry is in the header that other servers read, not in
        that of the letter."""
        if not isinstance(command, Push):
            return None
        letter = self.letter(command.wire)
        letter.expires_ms = 0
        frame = frame_for_node(letter, command)
        return frame.forwarded(False, frame.pending_acknowledge, frame.ttl - 1)

    def encode_event(self, effect: Inform) -> bytes:
        """An event about a channel, from which each session makes advisories."""
        return news_of(effect)
