"""What several tests do with a broker: look at its queues, read ranges of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tmqp_spark.catalog import Catalog, QueueState, Subscription
from tmqp_spark.options import SourceOptions, read_options
from tmqp_spark.ranges import QueueRange, read_range
from tmqp_spark.transport import BrokerLink

__all__ = ["LinkTo", "look", "sequences", "source", "whole"]

#: The fixture of that name.
LinkTo = Callable[..., BrokerLink]


def source(**options: Any) -> SourceOptions:
    """Options of a source, as a user writes them."""
    return read_options(SourceOptions, {name: str(value) for name, value in options.items()})


def look(link: BrokerLink, **options: Any) -> dict[str, QueueState]:
    """What is kept of some queues."""
    return Catalog(link, Subscription(source(**options))).look()


def whole(link: BrokerLink, key: str) -> QueueRange:
    """All that is kept of a queue."""
    state = look(link, subscribe=key)[key]
    return QueueRange(
        state.channel, state.queue, state.incarnation, state.earliest, state.latest + 1, state.bytes
    )


def sequences(
    link: BrokerLink, wanted: QueueRange, options: SourceOptions, bodies: bool = True
) -> list[int]:
    """The sequences of a range, as they come."""
    return [
        int(sequence)
        for portion in read_range(link, wanted, options, bodies)
        for sequence in portion.entry["sequence"]
    ]
