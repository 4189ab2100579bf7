"""Plans a batch query: which ranges of which queues it reads."""

from __future__ import annotations

from tmqp_spark.catalog import Catalog, QueueState, Subscription
from tmqp_spark.errors import InvalidOption
from tmqp_spark.filters import Filters
from tmqp_spark.options import SourceOptions
from tmqp_spark.ranges import QueueRange
from tmqp_spark.splitting import split_ranges
from tmqp_spark.starting import ending_edge, starting_edge
from tmqp_spark.transport import BrokerLink

__all__ = ["check_batch", "check_there", "plan_batch"]


def check_batch(options: SourceOptions) -> None:
    """Check that the options are valid for a batch query.

    :raises InvalidOption: if they are not.
    """
    Subscription(options)
    if options.mode == "drain":
        raise InvalidOption("mode=drain is for streams: a batch has nothing to commit")
    if starting_edge(options, "earliest").word == "latest":
        raise InvalidOption(
            "startingOffsets=latest reads nothing in a batch; give earliest or JSON"
        )
    ending_edge(options)


def check_there(
    link: BrokerLink, subscription: Subscription, states: dict[str, QueueState]
) -> None:
    """Check that every named queue exists.

    :raises InvalidOption: if some do not; the text names them.
    """
    missing = subscription.missing(states)
    if missing:
        there = ", ".join(states) or "none of those named"
        raise InvalidOption(
            f"{link.options.url} has no queue {', '.join(missing)}; create it, or check the option"
            f" that names it; there is {there}"
        )


def plan_batch(link: BrokerLink, options: SourceOptions, filters: Filters) -> list[QueueRange]:
    """Return the ranges that a batch query reads, divided into tasks.

    :raises InvalidOption: for missing queues, or invalid offsets.
    :raises BrokerRefused: and BrokerUnreachable, as the link does.
    """
    subscription = Subscription(options)
    catalog = Catalog(link, subscription)
    starting, ending = starting_edge(options, "earliest"), ending_edge(options)
    states = catalog.look(cursor=options.group or None)
    check_there(link, subscription, states)
    start = starting.resolve(states, catalog.look, "earliest", options.starting_strategy)
    end = ending.resolve(states, catalog.look, "latest", "latest")
    # Messages before the time need not be requested.
    since = catalog.look(max(0, filters.since_us // 1_000)) if filters.since_us > 0 else {}
    ranges: list[QueueRange] = []
    for key, state in states.items():
        if not filters.covers(state.channel, state.queue):
            continue
        first = max(1, start[key].next, filters.first)
        last = min(end[key].next - 1, state.latest, filters.last)
        at = since[key].at if key in since else None
        if at is not None and since[key].incarnation == state.incarnation:
            first = max(first, at)
        if first <= last:
            size = state.size_of(min(last - first + 1, state.count))
            ranges.append(
                QueueRange(state.channel, state.queue, state.incarnation, first, last + 1, size)
            )
    return split_ranges(link, ranges, options)
