"""What all sessions of a door of STOMP share."""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import PUT_BACK_START, STATUS_BROADCAST, STATUS_ROUND_ROBIN
from tmqp_server.doors.answers import CountedIds
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.stomp.options import StompLimits, StompOptions
from tmqp_server.doors.stomp.places import Place
from tmqp_server.engine.commands import PushExtras, Terms
from tmqp_server.engine.options import WITH_OWNER, ChannelChanges, QueueChanges
from tmqp_wires.stomp import FrameLimits
from tmqp_wires.stomp.connection import HeartBeat

__all__ = ["StompContext"]

_MS: Final = 1000


@final
class StompContext:
    """The context of a session; the parameters are those of ``StompDoor``."""

    __slots__ = (
        "_durable",
        "_extras",
        "_offset_s",
        "_shapes",
        "heart_beat",
        "ids",
        "letters",
        "limits",
        "names",
        "new_id",
        "of_frames",
        "of_temporary",
        "of_topic",
        "options",
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
    ) -> None:
        self.new_id = new_id
        self.limits = limits
        self.options = options
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
        self.of_temporary = ChannelChanges(lifetime=WITH_OWNER, owner_only=True)
        self._durable = durable
        queue = self.kept_queue()
        waiting = self.kept_queue()
        waiting.durable = None
        topic = self.of_topic = QueueChanges(status=STATUS_BROADCAST, request_acknowledge=False)
        #: How queues are made: by whether it is a topic, and whether it is temporary.
        self._shapes = {
            (False, False): queue,
            (False, True): waiting,
            (True, False): topic,
            (True, True): topic,
        }
        wait_ms = options.send_wait_ms
        #: What most pushes say.  A push makes no temporary destination: those have an owner.
        self._extras = {
            (is_topic, is_temporary): PushExtras(
                shape,
                channel_changes=self.of_temporary if is_temporary else None,
                wait_ms=0 if is_topic else wait_ms,
            )
            for (is_topic, is_temporary), shape in self._shapes.items()
        }

    def shape(self, place: Place) -> QueueChanges:
        """How the queue of a destination is made."""
        return self._shapes[place.is_topic, place.is_temporary]

    def kept_queue(self) -> QueueChanges:
        """How queues are made that keep messages, those of durable subscriptions among them; a new
        one each time."""
        options = self.options
        return QueueChanges(
            status=STATUS_ROUND_ROBIN,
            request_acknowledge=True,
            durable=self._durable,
            put_back_limit=options.redeliveries,
            dead_letter=(options.dead_letters, 0) if options.dead_letters else None,
        )

    def extras(self, place: Place, expires_in_ms: int = 0, delay_ms: int = 0) -> PushExtras:
        """What a push says beside its message."""
        usual = self._extras[place.is_topic, place.is_temporary]
        if not expires_in_ms and not delay_ms:
            return usual
        return PushExtras(
            usual.changes,
            expires_in_ms,
            delay_ms,
            channel_changes=usual.channel_changes,
            wait_ms=usual.wait_ms,
        )

    def terms(self, window: int, priority: int | None) -> Terms:
        """How a subscription gets messages: for as long as it likes; what it has not answered for
        goes to others, and does not count as refused: it may never have been looked at."""
        return Terms(window, -1, PUT_BACK_START, priority, counts=False)

    def unix_ms(self, now: float) -> int:
        """The time, in milliseconds since 1970."""
        return max(0, int((now + self._offset_s) * _MS))
