"""The door of STOMP, versions 1.0, 1.1 and 1.2."""

from __future__ import annotations

from typing import final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.doors.rewriting import frame_for_node
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.delivering import delivery_bytes
from tmqp_server.doors.stomp.message import DOOR, NUMBER, StompBodies
from tmqp_server.doors.stomp.options import StompLimits, StompOptions
from tmqp_server.doors.stomp.session import StompSession
from tmqp_server.doors.stomp.wildcards import news_of
from tmqp_server.engine.commands import Command, Push
from tmqp_server.engine.effects import Deliver, Inform

__all__ = ["StompDoor"]


@final
class StompDoor(QueuesOnly):
    """STOMP.

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
        limits: StompLimits | None = None,
        options: StompOptions | None = None,
        letters: Letters | None = None,
        names: DoorNames | None = None,
        wall_clock_offset_s: float = 0.0,
        *,
        durable: bool = False,
        done_confirms: bool = False,
    ) -> None:
        super().__init__(StompBodies())
        self.per_session = True
        self.letters = Letters() if letters is None else letters
        self.context = StompContext(
            new_id,
            limits or StompLimits(),
            options or StompOptions(),
            self.letters,
            DoorNames() if names is None else names,
            wall_clock_offset_s,
            durable=durable,
            done_confirms=done_confirms,
        )

    def open(self, session: int, now: float) -> StompSession:
        """Open a session for a new connection."""
        return StompSession(self.context, session, now)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The part of a MESSAGE that all consumers share, in the form of 1.2."""
        return delivery_bytes(
            self.letters,
            effect.message,
            effect.channel,
            effect.redelivered,
            views=self.context.views,
        )

    def encode_event(self, effect: Inform) -> bytes:
        """The name of a new channel, for subscriptions with wildcards."""
        return news_of(effect)

    def encode_for_node(self, command: Command) -> bytes | None:
        """A push as a TMQP message.  Its expiry is in the header that other servers read, not in
        that of the letter."""
        if not isinstance(command, Push):
            return None
        letter = self.letter(command.wire)
        letter.expires_ms = 0
        frame = frame_for_node(letter, command)
        return frame.forwarded(False, frame.pending_acknowledge, frame.ttl - 1)
