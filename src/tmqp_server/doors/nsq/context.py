"""What all sessions of a door of NSQ share."""

from __future__ import annotations

from typing import Final

from tmqp_server.doors.nsq.compression import Compression
from tmqp_server.doors.nsq.message import NsqIds
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions, terms_of
from tmqp_server.doors.nsq.topics import Shapes
from tmqp_server.doors.nsq_latency import Latencies
from tmqp_server.doors.nsq_world import NsqWorld
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.effects import Deliver

__all__ = ["NsqContext"]

#: The digit 0, with which the ids of other protocols' messages begin.
_ZERO: Final = 48
_NS_PER_S: Final = 1_000_000_000


class NsqContext:
    """The context of a session: limits, options, ids, and how topics are created.

    :param new_id: makes the unique prefix of this door's message ids.
    :param has_tls: whether connections can change to TLS.
    :param durable: whether topics and channels can be stored on disk; the options can disable it.

    :param world: the state that all doors of NSQ in one server share.

    ``time_s`` is the latest monotonic time that was passed to a session.
    """

    def __init__(
        self,
        new_id: IdSource,
        limits: NsqLimits,
        options: NsqOptions,
        wall_clock_offset_s: float = 0.0,
        *,
        has_tls: bool = False,
        durable: bool = False,
        world: NsqWorld | None = None,
    ) -> None:
        self.limits = limits
        self.options = options
        self.compression = Compression()
        self.terms = terms_of(
            limits, options, has_tls=has_tls, has_snappy=self.compression.has_snappy
        )
        self.world = NsqWorld() if world is None else world
        self.shapes = Shapes(options, self.world.names, durable=durable and options.durable)
        self.world.latencies = Latencies(
            options.e2e_processing_latency_percentiles,
            options.e2e_processing_latency_window_time_ms,
            limits.max_measured_channels,
        )
        self.new_id = new_id
        self.ids = NsqIds(new_id(), wall_clock_offset_s)
        self.time_s: float = 0.0
        self._offset_s = wall_clock_offset_s
        #: By session: the ids of other protocols' messages, by their ids for the session's client.
        self._foreign: dict[int, dict[bytes, str]] = {}

    def unix_ns(self, now: float) -> int:
        """The time, in nanoseconds since 1970."""
        return int((now + self._offset_s) * _NS_PER_S)

    def message_id(self, session: int, name: bytes) -> str:
        """The message id for an id that the client of a session uses."""
        if name[0] == _ZERO:
            ids = self._foreign.get(session)
            if ids is not None and name in ids:
                return ids[name]
        return name.decode("latin-1")

    def forget_foreign(self, session: int, name: bytes) -> None:
        """Forget the id of a foreign message that was answered."""
        ids = self._foreign.get(session)
        if ids is not None:
            ids.pop(name, None)

    def forget(self, session: int) -> None:
        """Forget a session that has ended."""
        self._foreign.pop(session, None)
        self.world.identities.pop(session, None)
        self.world.clients.pop(session, None)

    def name_of_foreign(self, effect: Deliver) -> bytes:
        """The id under which a message of another protocol is delivered: its sequence."""
        message = effect.message
        name = b"%016x" % message.sequence
        for session in effect.sessions:
            ids = self._foreign.setdefault(session, {})
            if len(ids) >= self.limits.max_foreign_in_flight and name not in ids:
                del ids[next(iter(ids))]
            ids[name] = message.message_id
        return name
