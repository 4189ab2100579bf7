"""The limits of one HTTP or WebSocket connection."""

from __future__ import annotations

from dataclasses import dataclass

from tmqp_server.doors.tables import check_positive

__all__ = ["HttpLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one HTTP peer may cost.

    :raises ValueError: when a value is not positive.
    """

    max_target_bytes: int = 8_192
    """Bytes of a request's target, path and query together; a longer one is answered with 414."""

    max_head_bytes: int = 16_384
    """Bytes of a request line and its header fields together; more are answered with 431."""

    max_header_fields: int = 64
    """Header fields of a request; more are answered with 431."""

    max_body_bytes: int = 1_048_576
    """Bytes of a request's body, checked before they are kept; more are answered with 413."""

    max_unanswered: int = 32
    """Pipelined requests of a connection that wait for their answers; the server does not read
    further ones until then."""

    max_pipelined_bytes: int = 262_144
    """Bytes of pipelined requests that wait to be processed; a connection that sends more is
    closed."""

    head_timeout_s: float = 10.0
    """Seconds from the first byte of a request to the end of its head; then it is answered with
    408."""

    body_timeout_s: float = 60.0
    """Seconds from the end of a request's head to the end of its body; then it is answered with
    408."""

    idle_timeout_s: float = 60.0
    """Seconds without a request after which the connection is closed."""

    max_wait_s: float = 60.0
    """Longest time that a request may wait, for a confirmation or for messages."""

    max_deliveries: int = 100
    """Messages that one request may take from a queue."""

    max_held_deliveries: int = 1_000
    """Unacknowledged deliveries of a connection; taking more is answered with 429."""

    linger_timeout_s: float = 2.0
    """Seconds for which the rest of a refused request is read and dropped, so that the peer can
    read the answer."""

    max_linger_bytes: int = 4_194_304
    """Bytes of a refused request that are read and dropped."""

    max_websocket_message_bytes: int = 1_048_576
    """Bytes of a WebSocket message, all its fragments together; a larger one ends the connection
    with the close code 1009."""

    max_websocket_fragments: int = 1_024
    """Fragments of a WebSocket message; more end the connection with the close code 1008."""

    max_websocket_joins: int = 64
    """Channels that a client of `tmqp.json.v1` joins; one more is answered with a problem."""

    max_websocket_unconfirmed: int = 1_024
    """Pushes of a client of `tmqp.json.v1` that wait for their confirms; beyond that no more is
    read from it until some are confirmed."""

    websocket_ping_interval_s: float = 20.0
    """Seconds without received data after which a WebSocket peer is pinged; after as many more
    without an answer the connection is closed."""

    websocket_close_timeout_s: float = 2.0
    """Seconds in which a WebSocket peer answers a close."""

    event_interval_s: float = 15.0
    """Seconds without an event after which a stream of events gets a comment, so that proxies keep
    it open."""

    def __post_init__(self) -> None:
        check_positive(self)
