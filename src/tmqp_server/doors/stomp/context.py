"""What all sessions of a door of STOMP share."""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import PUT_BACK_START, STATUS_ROUND_ROBIN
from tmqp_server.doors.answers import CountedIds
from tmqp_server.doors.jms.shapes import JmsShapes
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.stomp.options import StompLimits, StompOptions
from tmqp_server.doors.stomp.places import Place
from tmqp_server.engine.commands import PushExtras, Terms
from tmqp_server.engine.options import TEN, QueueChanges
from tmqp_wires.stomp import FrameLimits
from tmqp_wires.stomp.connection import HeartBeat

__all__ = ["StompContext"]

_MS: Final = 1000


@final
class StompContext:
    """The context of a session; the parameters are those of ``StompDoor``."""

    __slots__ = (
        "_durable",
        "_offset_s",
        "heart_beat",
        "ids",
        "letters",
        "limits",
        "names",
        "new_id",
        "of_frames",
        "options",
        "shapes",
        "views",
    )

    def __init__(
        self,
        new_id: IdSource,
        limits: StompLimits,
        options: StompOptions,
        letters: Letters,
        names: DoorNames,
        wall_clock_offset_s: float,
        *,
        durable: bool,
        done_confirms: bool,
    ) -> None:
        self.new_id = new_id
        self.limits = limits
        self.options = options
        self.views = options.maps == "json"
        self.letters = letters
        self.names = names
        self.ids = CountedIds(new_id())
        self._offset_s = wall_clock_offset_s
        self.of_frames = FrameLimits(
            max_head_bytes=limits.max_head_bytes,
            max_headers=limits.max_headers,
            max_body_bytes=limits.max_body_bytes,
        )
        self.heart_beat = HeartBeat(options.heart_beat_ms, options.heart_beat_ms)
        self._durable = durable
        temporary = self.kept_queue()
        temporary.durable = None
        self.shapes = JmsShapes(
            self.kept_queue(),
            temporary,
            options.send_wait_ms,
            done_confirms=done_confirms,
        )

    def shape(self, place: Place) -> QueueChanges:
        """The options for creating the queue of a destination."""
        return self.shapes.of(place.is_topic, place.is_temporary)

    def kept_queue(self) -> QueueChanges:
        """New options for creating queues, including those of durable subscriptions."""
        options = self.options
        return QueueChanges(
            status=STATUS_ROUND_ROBIN,
            request_acknowledge=True,
            durable=self._durable,
            put_back_limit=options.redeliveries,
            dead_letter=(options.dead_letters, 0) if options.dead_letters else None,
            priorities=TEN if options.priorities else None,
        )

    def extras(self, place: Place, expires_in_ms: int = 0, delay_ms: int = 0) -> PushExtras:
        """The extras of a push to a place."""
        is_topic, is_temporary = place.is_topic, place.is_temporary
        return self.shapes.extras(is_topic, is_temporary, expires_in_ms, delay_ms)

    def terms(self, window: int, priority: int | None, *, exclusive: bool = False) -> Terms:
        """The terms of a subscription, without an acknowledgement timeout.  Its unanswered
        deliveries go to other consumers at its end and do not count as refused, because the client
        may not have read them."""
        alone = exclusive or None
        return Terms(window, -1, PUT_BACK_START, priority, counts=False, exclusive=alone)

    def unix_ms(self, now: float) -> int:
        """The time, in milliseconds since 1970."""
        return max(0, int((now + self._offset_s) * _MS))
