"""The configuration of NSQ's doors: limits of one peer, and options with the original's names."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from tmqp_server.doors.tables import Numbers, check_positive
from tmqp_wires.nsq import ServerTerms
from tmqp_wires.nsq.names import is_name

__all__ = ["NsqLimits", "NsqOptions", "terms_of"]

#: Options that must not be below this; the others are positive.
_LEAST: Final[dict[str, int]] = {
    "max_deflate_level": 1,
    "max_channel_consumers": 0,
    "max_attempts": 0,
    "mem_queue_size": 0,
}
_MOST_DEFLATE: Final = 9
_NO_NUMBERS: Final = Numbers()


@dataclass(frozen=True, slots=True, kw_only=True)
class NsqLimits:
    """The limits of one peer.

    :raises ValueError: when a value is not positive.
    """

    max_line_bytes: int = 16_384
    """Bytes of a command's line; a longer one ends the connection without an answer."""

    max_identify_bytes: int = 65_536
    """Bytes of the body of an IDENTIFY or AUTH; a larger one is answered with ``E_BAD_BODY``."""

    max_msg_size: int = 1_048_576
    """Bytes of a message; a larger one is answered with ``E_BAD_MESSAGE``."""

    max_body_size: int = 5_242_880
    """Bytes of an MPUB, its messages and their sizes; more are answered with ``E_BAD_BODY``."""

    max_rdy_count: int = 2_500
    """Messages that a consumer may have in flight; a larger RDY is answered with ``E_INVALID``."""

    max_unanswered: int = 1_024
    """Publications of a connection that wait for their answers; the server does not read further
    ones until then."""

    max_early_bytes: int = 16_777_216
    """Bytes of commands that a client may send before the server has accepted it; more end the
    connection."""

    max_foreign_in_flight: int = 10_000
    """Unanswered messages of other protocols whose ids are remembered for a client; beyond that,
    the oldest ones cannot be answered and time out."""

    max_measured_channels: int = 1_000
    """Channels whose end-to-end latency is measured at a time, if the option is set; each takes up
    to 40 kB. For a further one, the measurements of the channel that has finished no message for
    the longest time are discarded."""

    greeting_timeout_s: float = 10.0
    """Seconds from the connection to its first four bytes, after which it is closed."""

    linger_timeout_s: float = 5.0
    """Seconds for which a connection that broke the protocol waits for earlier answers."""

    def __post_init__(self) -> None:
        check_positive(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class NsqOptions:
    """The options of NSQ's doors.  Names and defaults are the original's if it has them (N18), with
    the unit at the end."""

    version: str = "1.3.0"
    """The version of nsqd reported to clients; some derive the server's features from it."""

    msg_timeout_ms: int = 60_000
    """How long a consumer has for a message, unless it requests another time."""

    max_msg_timeout_ms: int = 900_000
    """The longest such time, from the delivery on, however often it is extended."""

    max_req_timeout_ms: int = 3_600_000
    """The longest delay of DPUB and REQ."""

    heartbeat_interval_ms: int = 30_000
    """The interval of heartbeats, unless the client requests another one."""

    max_heartbeat_interval_ms: int = 60_000
    """The longest such time."""

    output_buffer_size: int = 16_384
    """The size of the output buffer reported to clients.  The door sends messages at once."""

    max_output_buffer_size: int = 65_536
    """The largest size that a client may ask for."""

    output_buffer_timeout_ms: int = 250
    """The timer of the output buffer reported to clients."""

    min_output_buffer_timeout_ms: int = 25
    """The shortest timer that a client may ask for."""

    max_output_buffer_timeout_ms: int = 30_000
    """The longest timer that a client may ask for."""

    snappy: bool = True
    """Whether connections may be compressed with snappy."""

    deflate: bool = True
    """Whether connections may be compressed with deflate."""

    max_deflate_level: int = 6
    """The best compression that a client may ask for, 1 to 9."""

    tls_required: bool = False
    """Whether clients must change to TLS before anything else."""

    auth_required: bool = False
    """Whether clients must send AUTH with a token of ``[access]``."""

    max_channel_consumers: int = 0
    """Consumers of a channel; 0 for no limit."""

    durable: bool = True
    """Whether topics and channels are kept on disk, where the server has a data directory."""

    mem_queue_size: int = 10_000
    """Waiting messages of a topic, and of a channel, that stay in memory; the rest waits on disk,
    with a data directory.  0: the server's limit."""

    max_attempts: int = 0
    """How often a message is sent before it becomes a dead letter; 0 for ever."""

    dead_letter: str = ""
    """The topic to which dead letters go; without one they are dropped."""

    e2e_processing_latency_percentiles: Numbers = _NO_NUMBERS
    """Percentiles of the time from a message's publication to its FIN that the statistics show,
    such as ``[0.99, 0.5]``; above 0 and up to 1. Empty: nothing is measured."""

    e2e_processing_latency_window_time_ms: int = 600_000
    """Over which time they are computed: between half of it and all of it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int):
                continue
            least = _LEAST.get(field.name, 1)
            if value < least:
                raise ValueError(f"{field.name} must be at least {least}, got {value}")
        if self.max_deflate_level > _MOST_DEFLATE:
            raise ValueError(f"max_deflate_level goes up to 9, got {self.max_deflate_level}")
        if self.msg_timeout_ms > self.max_msg_timeout_ms:
            raise ValueError("msg_timeout_ms must not be beyond max_msg_timeout_ms")
        if self.heartbeat_interval_ms > self.max_heartbeat_interval_ms:
            raise ValueError("heartbeat_interval_ms must not be beyond max_heartbeat_interval_ms")
        if self.dead_letter and not is_name(self.dead_letter.encode()):
            raise ValueError(f"dead_letter: {self.dead_letter!r} is not a topic name")
        for each in self.e2e_processing_latency_percentiles:
            if not 0 < each <= 1:
                raise ValueError(
                    "e2e_processing_latency_percentiles must be above 0 and at most 1, got"
                    f" {each:g}"
                )


def terms_of(
    limits: NsqLimits, options: NsqOptions, *, has_tls: bool, has_snappy: bool
) -> ServerTerms:
    """The terms for the codec, from limits and options.

    :param has_tls: whether connections can change to TLS.
    :param has_snappy: whether the packages for snappy are installed.
    """
    return ServerTerms(
        version=options.version,
        max_line_bytes=limits.max_line_bytes,
        max_identify_bytes=limits.max_identify_bytes,
        max_msg_size=limits.max_msg_size,
        max_body_size=limits.max_body_size,
        max_rdy_count=limits.max_rdy_count,
        msg_timeout_ms=options.msg_timeout_ms,
        max_msg_timeout_ms=options.max_msg_timeout_ms,
        max_req_timeout_ms=options.max_req_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_heartbeat_interval_ms=options.max_heartbeat_interval_ms,
        output_buffer_size=options.output_buffer_size,
        max_output_buffer_size=options.max_output_buffer_size,
        output_buffer_timeout_ms=options.output_buffer_timeout_ms,
        min_output_buffer_timeout_ms=options.min_output_buffer_timeout_ms,
        max_output_buffer_timeout_ms=options.max_output_buffer_timeout_ms,
        tls=has_tls,
        tls_required=options.tls_required,
        deflate=options.deflate,
        max_deflate_level=options.max_deflate_level,
        snappy=options.snappy and has_snappy,
        auth_required=options.auth_required,
    )
