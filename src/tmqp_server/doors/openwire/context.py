"""What all sessions of a door of OpenWire share."""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import PUT_BACK_START, STATUS_ROUND_ROBIN
from tmqp_server.doors.jms.shapes import JmsShapes
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.openwire.message import OpenwireMessage, message_of_letter
from tmqp_server.doors.openwire.options import OpenwireLimits, OpenwireOptions
from tmqp_server.doors.openwire.places import JmsPlace
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.commands import PushExtras, Terms
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import STICKY, TEN, QueueChanges
from tmqp_wires.openwire import WireFormat
from tmqp_wires.openwire.ids import Destination
from tmqp_wires.openwire.messages import KeptMessage

__all__ = ["OpenwireContext"]

_MS: Final = 1000
_PROVIDER: Final = "ActiveMQ"
_PROVIDER_VERSION: Final = "5.16.4"


@final
class OpenwireContext:
    """The context of a session; the parameters are those of ``OpenwireDoor``."""

    __slots__ = (
        "_converted",
        "_keeps",
        "_last",
        "_offset_s",
        "broker_id",
        "in_use",
        "letters",
        "limits",
        "names",
        "new_id",
        "options",
        "shapes",
        "temporary",
        "wire_format",
    )

    def __init__(
        self,
        new_id: IdSource,
        limits: OpenwireLimits,
        options: OpenwireOptions,
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
        self.letters = letters
        self.names = names
        self._offset_s = wall_clock_offset_s
        self._keeps = durable
        self.broker_id = f"ID:tmqp-{new_id()[:12]}-0:1"
        self.wire_format = WireFormat(
            silence_ms=options.inactivity_ms,
            max_frame_bytes=limits.max_frame_bytes,
            provider=_PROVIDER,
            provider_version=_PROVIDER_VERSION,
        )
        #: The temporary destinations of all connections, by the names of their channels.
        self.temporary: dict[str, Destination] = {}
        #: The channels of durable subscriptions that have a consumer.
        self.in_use: set[str] = set()
        self.shapes = JmsShapes(
            self._queue(kept=durable),
            self._queue(kept=False),
            options.send_wait_ms,
            done_confirms=done_confirms,
        )
        self._last: Message | None = None
        self._converted: KeptMessage | None = None

    def shape(self, place: JmsPlace) -> QueueChanges:
        """The options for creating the queue of a destination."""
        return self.shapes.of(place.is_topic, place.is_temporary)

    def _queue(self, *, kept: bool) -> QueueChanges:
        options = self.options
        dead = (options.dead_letters, 0) if options.dead_letters else None
        return QueueChanges(
            status=STATUS_ROUND_ROBIN,
            request_acknowledge=True,
            durable=kept,
            put_back_limit=-1,
            dead_letter=dead,
            expired_to_dead_letter=dead is not None,
            group_keys=STICKY if options.groups else None,
            priorities=TEN if options.priorities else None,
        )

    def durable_shape(self) -> QueueChanges:
        """New options for creating the queue of a durable subscription, which the caller may
        change."""
        return self._queue(kept=self._keeps)

    def extras(self, place: JmsPlace, expires_in_ms: int = 0, delay_ms: int = 0) -> PushExtras:
        """The extras of a push to a place."""
        is_topic, is_temporary = place.is_topic, place.is_temporary
        return self.shapes.extras(is_topic, is_temporary, expires_in_ms, delay_ms)

    def terms(self, window: int, priority: int | None, *, exclusive: bool = False) -> Terms:
        """The terms of a consumer, without an acknowledgement timeout.  Unanswered deliveries of a
        lost connection go to other consumers and count as delivered, because they may have been."""
        return Terms(window, -1, PUT_BACK_START, priority, exclusive=exclusive or None)

    def kept_of(self, message: Message, channel: str) -> KeptMessage:
        """The fields of a message for the wire, made once for all consumers."""
        wire = message.wire
        if isinstance(wire, OpenwireMessage):
            return wire.kept
        converted = self._converted
        if self._last is not message or converted is None:
            letter = self.letters.of(message, channel)
            letter.channel = self.names.foreign_name(channel).decode("utf-8", "replace")
            converted = message_of_letter(letter, message.sequence).keep()
            self._last, self._converted = message, converted
        return converted

    def unix_ms(self, now: float) -> int:
        """The time, in milliseconds since 1970."""
        return max(0, int((now + self._offset_s) * _MS))
