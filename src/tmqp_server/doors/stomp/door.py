"""The door of STOMP, versions 1.0, 1.1 and 1.2."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.doors.rewriting import frame_for_node
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.message import DOOR, NUMBER, StompBodies, StompMessage, headers_of
from tmqp_server.doors.stomp.options import StompLimits, StompOptions
from tmqp_server.doors.stomp.session import StompSession
from tmqp_server.engine.commands import Command, Push
from tmqp_server.engine.effects import Deliver
from tmqp_wires.stomp.frames import V1_2, header_lines

__all__ = ["StompDoor"]

#: Headers that programs find in every message, and what they are where it says nothing.
_USUAL: Final = {b"priority:": b"priority:4\n", b"expires:": b"expires:0\n"}


@final
class StompDoor(QueuesOnly):
    """STOMP.

    :param new_id: draws what is unique about this door and its connections.
    :param letters: reads what came in by doors of other kinds.
    :param names: turns destinations into channels.
    :param durable: whether queues are made so that they are kept on disk.
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
        )

    def open(self, session: int, now: float) -> StompSession:
        """A new connection."""
        return StompSession(self.context, session, now)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """What all who get a message read behind the headers of their own, in the form of 1.2."""
        message = effect.message
        wire = message.wire
        if isinstance(wire, StompMessage):
            lines, body, came_ms = wire.lines, wire.body, wire.came_ms
        else:
            letter = self.letters.of(message, effect.channel)
            lines = header_lines(headers_of(letter), V1_2)
            body, came_ms = letter.body, letter.timestamp_ms
        # Ours stand in front: of repeated headers the first one counts.
        own = b"content-length:%d\n" % len(body)
        if came_ms:
            own += b"timestamp:%d\n" % came_ms
        for name, usual in _USUAL.items():
            if not lines.startswith(name) and b"\n" + name not in lines:
                own += usual
        if effect.redelivered:
            own += b"redelivered:true\n"
        return b"%s%s\n%s\0" % (own, lines, body)

    def encode_for_node(self, command: Command) -> bytes | None:
        """A push; until when it lives is said by the header that other servers read."""
        if not isinstance(command, Push):
            return None
        letter = self.letter(command.wire)
        letter.expires_ms = 0
        frame = frame_for_node(letter, command)
        return frame.forwarded(False, frame.pending_acknowledge, frame.ttl - 1)
