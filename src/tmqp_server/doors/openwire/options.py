"""The configuration of the door of OpenWire: the limits of one client, and its options."""

from __future__ import annotations

from dataclasses import dataclass

from tmqp_server.doors.tables import check_positive

__all__ = ["OpenwireLimits", "OpenwireOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenwireLimits:
    """The limits of one client.

    :raises ValueError: when a value is not positive.
    """

    max_frame_bytes: int = 16_777_216
    """Bytes of one command; a longer one ends the connection before it is read."""

    max_inflated_bytes: int = 16_777_216
    """Bytes of a compressed body after decompression for clients of other protocols; they get a
    larger one compressed."""

    max_early_bytes: int = 2_097_152
    """Bytes that a client may send before the server has accepted it; more end the connection."""

    max_consumers: int = 1_000
    """Consumers of one connection, browsers among them; one more is refused."""

    max_producers: int = 10_000
    """Producers of one connection; one more is refused."""

    max_prefetch: int = 32_767
    """The largest prefetch; a client that asks for a larger one gets this."""

    max_destinations: int = 100
    """Names in one composite destination; more are refused."""

    max_matches: int = 1_000
    """Destinations that one consumer with wildcards joins; it gets no messages of further ones."""

    max_unanswered: int = 1_000
    """Commands that wait for the broker's answer; beyond this, the server does not read from the
    client until some are answered."""

    max_temporary: int = 1_000
    """Temporary destinations of one connection; one more is refused."""

    max_transactions: int = 100
    """Open transactions of one connection; one more is refused."""

    max_transaction_commands: int = 1_000
    """Messages and acknowledgements in one transaction; with one more, it can only be rolled back.
    The server's ``max_batch_length`` applies, too."""

    max_transaction_bytes: int = 16_777_216
    """Bytes of the open transactions of one connection; a transaction that exceeds it can only be
    rolled back.  The server's ``max_batch_bytes`` applies to each of them, too."""

    connect_s: float = 30.0
    """Seconds that a client has to introduce itself; then the connection ends."""

    def __post_init__(self) -> None:
        check_positive(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenwireOptions:
    """What a server does for OpenWire clients.

    :raises ValueError: for a value that cannot be used.
    """

    durable: bool = True
    """Whether queues are made so that their messages are kept on disk, where the server has a data
    directory."""

    done_confirms: bool = True
    """Whether a persistent message of a queue is confirmed as soon as its consumer has acknowledged
    it, although the disk does not have it yet: nobody is owed it any more.  Without, each confirm
    waits for the disk, as it always does in a group of servers."""

    inactivity_ms: int = 30_000
    """The longest silence of a client before it is taken for gone, in milliseconds; the client may
    ask for a shorter one.  0 for no bound."""

    send_wait_ms: int = 10_000
    """Milliseconds that a message waits for room in a full queue before it is refused; the client
    is not read meanwhile.  0 to refuse at once, -1 to wait for ever."""

    dead_letters: str = "ActiveMQ.DLQ"
    """The queue of messages that a client gave up, or that have expired; empty to drop them."""

    groups: bool = True
    """Whether messages with the same JMSXGroupID go to one consumer, in queues that are made
    here."""

    priorities: bool = False
    """Whether queues created by this door are ordered by the ten priorities of JMS, as with
    ActiveMQ's policy ``prioritizedMessages``.  Otherwise there are two: above 4, and the rest."""

    broker_name: str = "localhost"
    """The name of the broker."""

    def __post_init__(self) -> None:
        if self.inactivity_ms < 0:
            raise ValueError(f"inactivity_ms must not be negative, got {self.inactivity_ms}")
        if self.send_wait_ms < -1:
            raise ValueError(f"send_wait_ms must be -1 or more, got {self.send_wait_ms}")
        if not self.broker_name:
            raise ValueError("broker_name must not be empty")
