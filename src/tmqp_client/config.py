"""All limits and timeouts of a client, each a documented field that is enforced."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from math import inf

from tmqp.errors import LocalProtocolError
from tmqp.limits import Limits

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """How long a client waits, and how much it buffers.

    :raises LocalProtocolError: if a value is not positive, or ``overflow_factor`` is below 1.
    """

    protocol: Limits = field(default_factory=Limits)
    """Limits for the server's bytes: frame sizes, the handshake's deadline, keep-alive."""

    connect_timeout_s: float = 10.0
    """Seconds to reach the server's address (the handshake that follows has its own deadline,
    ``protocol.handshake_timeout_s``)."""

    response_timeout_s: float = 30.0
    """Seconds to wait for the answer to an operation or a ping, as in the original client."""

    acknowledge_timeout_s: float = 15.0
    """Seconds to wait for the acknowledgement of a push, as in the original client."""

    pull_timeout_s: float = 15.0
    """Seconds without a message after which a pull is given up, as in the original client."""

    close_timeout_s: float = 5.0
    """Seconds that a closing client gives the server to read what was sent and to close its
    side."""

    max_outstanding: int = 10_000
    """Operations and confirmed pushes that may wait for an answer; further ones wait to be sent."""

    unconfirmed_bytes: int = 67_108_864
    """Bytes of pushes kept until they are confirmed, to be sent again on another connection;
    further pushes wait to be sent."""

    buffered_messages: int = 10_000
    """Messages that may wait while the client is not connected; further ones wait, or are dropped
    or refused (``when_full`` of ``connect``)."""

    buffered_bytes: int = 8_388_608
    """Bytes that may wait while the client is not connected; as ``buffered_messages``."""

    outbound_bytes: int = 1_048_576
    """Bytes waiting for the socket at which senders have to wait. Acknowledgements may use up to
    ``overflow_factor`` times this; then reading pauses, too."""

    consumer_messages: int = 1_000
    """Messages that may wait for one consumer; then reading from the socket pauses, so that the
    server slows down, unless an answer is awaited."""

    consumer_bytes: int = 8_388_608
    """Bytes that may wait for one consumer; as ``consumer_messages``."""

    overflow_factor: float = 4.0
    """While an answer is awaited, a consumer's buffer may grow to this many times its limit
    (otherwise a consumer that waits for the answer could never empty it); then reading pauses in
    any case. One read from the socket (64 KiB) may come on top."""

    unclaimed_messages: int = 1_000
    """Messages that are kept although no code of the program receives them (see
    ``Client.unclaimed``), and as many queue messages for future consumers; more are dropped and
    counted."""

    unclaimed_bytes: int = 1_048_576
    """Bytes of these messages; as ``unclaimed_messages``."""

    def hurried(self, handshake_s: float | None, silence_s: float | None) -> ClientLimits:
        """Return these limits, with shorter timeouts for the handshake and for a silent server if
        these are shorter."""
        protocol = self.protocol
        handshake = min(protocol.handshake_timeout_s, handshake_s or inf)
        interval = min(protocol.ping_interval_s, silence_s or inf)
        if (handshake, interval) == (protocol.handshake_timeout_s, protocol.ping_interval_s):
            return self
        hurried = replace(protocol, handshake_timeout_s=handshake, ping_interval_s=interval)
        return replace(self, protocol=hurried)

    def __post_init__(self) -> None:
        for declared in fields(self):
            if declared.name == "protocol":
                continue
            value = getattr(self, declared.name)
            if not value > 0:
                raise LocalProtocolError(f"{declared.name} must be positive, got {value!r}")
        if self.overflow_factor < 1:
            raise LocalProtocolError(
                f"overflow_factor must be at least 1: {self.overflow_factor!r}"
            )
