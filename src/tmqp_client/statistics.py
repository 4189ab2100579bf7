"""The statistics of a client."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClientStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """Counters since the client was opened, and current numbers."""

    pushed: int
    """Messages pushed, confirmed or not."""

    confirmed: int
    """Pushes acknowledged."""

    refused: int
    """Pushes refused: by a negative acknowledgement or a result code."""

    timed_out: int
    """Operations, pings and pushes that got no answer in time."""

    delivered: int
    """Queue messages that came."""

    acknowledged: int
    """Acknowledges sent, negative ones among them."""

    directs: int
    """Direct messages that arrived while the program listened for them."""

    events: int
    """Events that arrived while the program listened for them."""

    customs: int
    """Custom messages that arrived while the program listened for them."""

    unmatched_answers: int
    """Acknowledgements and responses that no call waited for: late, repeated or unsolicited."""

    unclaimed: int
    """Messages that no code of the program received; see :meth:`tmqp_client.Client.unclaimed`."""

    dropped: int
    """Messages that came and were not handed out: of an unknown type, without time to live, beyond
    a bound, left in a consumer's buffer when it closed or the connection was lost."""

    lapsed: int
    """Deliveries that are no longer in flight to this client, as reported by the server; see
    :attr:`tmqp_client.Message.lapsed`."""

    pauses: int
    """How often reading paused because a consumer, or the server, did not keep up."""

    connections: int
    """Times a server has accepted this client; one more than it came back."""

    resent: int
    """Messages sent again because the connection was lost before their answer."""

    unsent: int
    """Messages without a waiting call that were never sent: dropped by ``when_full``, or left when
    the client closed while it was not connected."""

    buffered: int
    """Messages that wait for a connection now."""

    outstanding: int
    """Answers awaited now."""

    backlog_bytes: int
    """Bytes queued now that the system has not taken."""
