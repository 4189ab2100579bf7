"""The configuration of the door of Simple MQ: the limits of one peer, and its options."""

from __future__ import annotations

from dataclasses import dataclass

from tmqp_server.doors.tables import check_positive

__all__ = ["SmqLimits", "SmqOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmqLimits:
    """The limits of one peer.

    :raises ValueError: when a value is not positive.
    """

    max_line_bytes: int = 1_048_576
    """Bytes of a line; a longer one ends the connection without an answer."""

    max_queues: int = 1_000
    """Queues that the door remembers for the statistics. Messages for further queues are accepted,
    too, but the statistics omit these queues."""

    max_in_hand: int = 100_000
    """Messages that one client has received and not yet counted as done; it gets no more until it
    counts some."""

    max_early_bytes: int = 2_097_152
    """Bytes that a client may send before the server has accepted it; more end the connection."""

    max_wait_s: float = 60.0
    """How long a message may wait for room in a full queue, or a full server; the server does not
    read from the client meanwhile.  Then the connection ends, so that its producer notices."""

    def __post_init__(self) -> None:
        check_positive(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmqOptions:
    """What a server does for clients of Simple MQ."""

    durable: bool = False
    """Whether queues are kept on disk; the server needs a data directory then.  The original keeps
    its queues in memory."""

    lose_unfinished: bool = False
    """Whether messages that a consumer has received and not counted as done are lost when it
    leaves, as with the original.  Otherwise other consumers get them."""
