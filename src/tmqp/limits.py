"""All limits of a connection, each a documented field that is enforced.

``docs/limits.md`` is generated from this class, and a test checks for each field that a value at
the limit works and one above is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from tmqp.constants import MAX_HEADER_BLOCK_BYTES, MAX_NAME_BYTES
from tmqp.errors import LocalProtocolError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for one peer.

    :raises LocalProtocolError: if a value is not positive, or more than the wire can carry.
    """

    max_payload_bytes: int = 1_048_576
    """Largest payload accepted, in bytes, read from the head before the body is buffered.

    The wire allows 2^64-1 (specification, "Protocol Limitations"); 1 MiB is what NATS and Kafka
    start with.
    """

    max_header_bytes: int = MAX_HEADER_BLOCK_BYTES
    """Largest header block accepted, in bytes; the wire's maximum is 65,535 (F6)."""

    max_name_bytes: int = MAX_NAME_BYTES
    """Longest message id, source or target accepted, in bytes of UTF-8; the wire's maximum is
    255."""

    max_hello_bytes: int = 16_384
    """Largest connection information (payload and header block together), in bytes, so that an
    unknown peer costs little."""

    max_hello_properties: int = 32
    """Further properties in the connection information, besides the client's id, name, type and
    token (F29); a server keeps them while the client is connected."""

    max_hello_property_bytes: int = 4_096
    """Bytes of these further properties together, names and values, in UTF-8."""

    max_early_bytes: int = 131_072
    """Bytes that a client may send after its hello before the server accepts it (F35 allows this;
    a read of 128 KiB is generous)."""

    handshake_timeout_s: float = 10.0
    """Seconds from connect until the connection must be accepted (F25: the original has 120)."""

    ping_interval_s: float = 20.0
    """Seconds without received data after which a ping is sent (F38: only received traffic
    counts)."""

    max_missed_pings: int = 1
    """Pings that may stay unanswered, one interval each: with 1 the connection ends two intervals
    after the last byte received."""

    max_pending_pulls: int = 1_024
    """Unanswered pull requests of a client on one connection."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise LocalProtocolError(f"{field.name} must be positive, got {value!r}")
        if self.max_header_bytes > MAX_HEADER_BLOCK_BYTES:
            raise LocalProtocolError(f"max_header_bytes is at most {MAX_HEADER_BLOCK_BYTES}")
        if self.max_name_bytes > MAX_NAME_BYTES:
            raise LocalProtocolError(f"max_name_bytes is at most {MAX_NAME_BYTES}")
        if self.max_payload_bytes >= 2**63:
            raise LocalProtocolError("max_payload_bytes must be below 2**63")
