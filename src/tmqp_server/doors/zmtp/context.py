"""What all sessions of a door of ZeroMQ share."""

from __future__ import annotations

import dataclasses
from typing import Final, final

from tmqp.constants import PUT_BACK_START, STATUS_BROADCAST, STATUS_ROUND_ROBIN
from tmqp_server.doors.answers import CountedIds
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.zmtp.keys import EndpointKeys
from tmqp_server.doors.zmtp.message import DOOR, ZmtpRequest, frames_of
from tmqp_server.doors.zmtp.options import ZmtpLimits, ZmtpOptions
from tmqp_server.engine.commands import PushExtras, Terms
from tmqp_server.engine.effects import Deliver
from tmqp_server.engine.options import QueueChanges
from tmqp_wires.zmtp import ZmtpConfig

__all__ = ["ZmtpContext"]

_MS: Final = 1000.0
#: A push waits for room without a limit.
_FOR_EVER: Final = -1


@final
class ZmtpContext:
    """The context of a session; the parameters are those of ``ZmtpDoor``.

    Attributes: ``refused``, the number of messages that were refused; ``pair``, the session of the
    one PAIR socket, 0 for none; ``config``, this side of accepted connections; ``calling``, this
    side of connections that the server makes.
    """

    __slots__ = (
        "calling",
        "config",
        "ids",
        "letters",
        "limits",
        "names",
        "new_id",
        "options",
        "pair",
        "refused",
        "of_queue",
        "of_topic",
        "publishing",
        "waiting",
    )

    def __init__(
        self,
        new_id: IdSource,
        limits: ZmtpLimits,
        options: ZmtpOptions,
        letters: Letters,
        names: DoorNames,
        keys: EndpointKeys | None = None,
    ) -> None:
        self.new_id = new_id
        self.limits = limits
        self.options = options
        self.letters = letters
        self.names = names
        self.ids = CountedIds(new_id())
        self.refused = 0
        self.pair = 0
        self.config = ZmtpConfig(
            socket_type=options.socket_type,
            as_server=True,
            mechanism=options.mechanism.upper(),
            max_part_bytes=limits.max_part_bytes,
            max_parts=limits.max_parts,
            max_message_bytes=limits.max_message_bytes,
            max_command_bytes=limits.max_command_bytes,
            handshake_s=limits.handshake_s,
            heartbeat_s=options.heartbeat_ms / _MS,
            heartbeat_timeout_s=limits.heartbeat_timeout_s,
            keys=None if keys is None else keys.serving,
        )
        self.calling = self.config
        if keys is not None and keys.calling is not None:
            self.calling = dataclasses.replace(self.config, as_server=False, keys=keys.calling)
        #: The options of queues and services, without a limit on redeliveries.
        self.of_queue = QueueChanges(
            status=STATUS_ROUND_ROBIN,
            request_acknowledge=True,
            durable=options.durable,
            put_back_limit=-1,
        )
        self.of_topic = QueueChanges(status=STATUS_BROADCAST, request_acknowledge=False)
        #: The extras of pushes: they wait for room in a queue, but not in a topic.
        self.waiting = PushExtras(self.of_queue, wait_ms=_FOR_EVER)
        self.publishing = PushExtras(self.of_topic)

    def terms(self, window: int) -> Terms:
        """The terms of consumers: a window, and no acknowledgement timeout; unanswered deliveries
        go to other consumers."""
        return Terms(window, -1, PUT_BACK_START)

    def channel(self, name: str) -> str:
        """The channel that an option, or a peer's metadata, names."""
        return self.names.exact_channel(name.encode())

    def frames_of(self, effect: Deliver) -> bytes:
        """The frames of a delivery, without an envelope."""
        message = effect.message
        wire = message.wire
        if isinstance(wire, bytes) and message.producer.door == DOOR:
            return wire
        if isinstance(wire, ZmtpRequest):
            return wire.raw
        return frames_of(self.letters.of(message, effect.channel))
