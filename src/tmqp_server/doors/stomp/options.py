"""The configuration of the door of STOMP: the limits of one client, and its options."""

from __future__ import annotations

from dataclasses import dataclass

from tmqp_server.doors.tables import check_positive

__all__ = ["StompLimits", "StompOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StompLimits:
    """The limits of one client.

    :raises ValueError: when a value is not positive.
    """

    max_head_bytes: int = 65_536
    """Bytes of the command and the header lines of one frame; more end the connection."""

    max_headers: int = 1_000
    """Header lines of one frame; more end the connection."""

    max_body_bytes: int = 16_777_216
    """Bytes of the body of one frame; a longer one ends the connection before it is read."""

    max_early_bytes: int = 2_097_152
    """Bytes that a client may send before the server has accepted it; more end the connection."""

    max_subscriptions: int = 1_000
    """Subscriptions of one connection; one more ends it."""

    max_prefetch: int = 32_766
    """The largest ``activemq.prefetchSize`` that a client may ask for; a larger one ends the
    connection."""

    max_unanswered: int = 1_000
    """Unanswered frames with a receipt; beyond this, the server does not read from the client until
    some are answered."""

    max_temporary: int = 100
    """Temporary destinations of one connection; one more ends it."""

    max_transactions: int = 100
    """Open transactions of one connection; one more ends it."""

    max_transaction_frames: int = 1_000
    """Messages and acknowledgements in one transaction; one more ends the connection. The server's
    ``max_batch_length`` applies, too."""

    max_transaction_bytes: int = 16_777_216
    """Bytes of the open transactions of one connection; beyond that the connection ends.  The
    server's ``max_batch_bytes`` applies to each of them, too."""

    max_matches: int = 1_000
    """Destinations that one subscription with wildcards joins; it gets no messages of further
    ones."""

    connect_s: float = 30.0
    """Seconds that a client has to send CONNECT; then the connection ends."""

    def __post_init__(self) -> None:
        check_positive(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class StompOptions:
    """What a server does for STOMP clients.

    :raises ValueError: for a value that cannot be used.
    """

    durable: bool = True
    """Whether queues are made so that their messages are kept on disk, where the server has a data
    directory."""

    done_confirms: bool = True
    """Whether a SEND to a queue gets its receipt as soon as its consumer has acknowledged the
    message, although the disk does not have it yet: nobody is owed it any more.  Without, each
    receipt waits for the disk, as it always does in a group of servers."""

    prefetch: int = 1_000
    """Messages that a subscription may have unanswered, where it names no
    ``activemq.prefetchSize``."""

    heart_beat_ms: int = 1_000
    """The shortest time between heart-beats, in milliseconds, that the server offers and requests;
    the client can make it longer.  0 for none."""

    send_wait_ms: int = 10_000
    """Milliseconds that a SEND waits for room in a full queue before it is refused; the client is
    not read meanwhile.  0 to refuse at once, -1 to wait for ever."""

    redeliveries: int = 6
    """How often a message is sent again after NACK, until it goes to ``dead_letters``; -1 for
    without end."""

    dead_letters: str = "ActiveMQ.DLQ"
    """The channel of messages that were refused too often; empty to drop them."""

    priorities: bool = False
    """Whether queues created by this door are ordered by the ten priorities of JMS, as with
    ActiveMQ's policy ``prioritizedMessages``.  Otherwise there are two: above 4, and the rest."""

    maps: str = "json"
    """What clients read of JMS's map, stream and object messages: ``json``, maps and streams as
    JSON and objects as Java has serialized them, or ``empty``, no body, as ActiveMQ has it."""

    def __post_init__(self) -> None:
        if self.maps not in ("json", "empty"):
            raise ValueError(f"maps must be 'json' or 'empty', got {self.maps!r}")
        if self.prefetch < 1:
            raise ValueError(f"prefetch must be at least 1, got {self.prefetch}")
        if self.heart_beat_ms < 0:
            raise ValueError(f"heart_beat_ms must not be negative, got {self.heart_beat_ms}")
        if self.send_wait_ms < -1:
            raise ValueError(f"send_wait_ms must be -1 or more, got {self.send_wait_ms}")
        if self.redeliveries < 1 and self.redeliveries != -1:
            raise ValueError(f"redeliveries must be at least 1, or -1, got {self.redeliveries}")
