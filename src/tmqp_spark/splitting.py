"""Divides ranges into tasks: by bytes, by messages, and by the least number of tasks."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp_spark.options import SourceOptions
from tmqp_spark.parts import ask_parts
from tmqp_spark.ranges import QueueRange
from tmqp_spark.transport import BrokerLink

__all__ = ["bytes_up_to", "split_evenly", "split_ranges"]


def split_ranges(
    link: BrokerLink, ranges: list[QueueRange], options: SourceOptions
) -> list[QueueRange]:
    """Divide ranges into parts of about ``targetPartitionBytes`` and at most
    ``maxRecordsPerPartition`` messages; make at least ``minPartitions`` parts, if there are enough
    messages.

    :raises BrokerRefused: and BrokerUnreachable, as the link does.
    """
    target = options.target_bytes
    parts = _split(link, ranges, target, options.max_records)
    least = options.min_partitions or 0
    if not parts or len(parts) >= least:
        return parts
    # Not enough: each range gets a share by the bytes it has, or by its messages.
    weights = [max(1, part.bytes or part.end - part.start) for part in parts]
    total = sum(weights)
    finer: list[QueueRange] = []
    for part, weight in zip(parts, weights, strict=True):
        finer += split_evenly(part, max(1, -(-weight * least // total)))
    return finer


def split_evenly(whole: QueueRange, count: int) -> list[QueueRange]:
    """Divide a range into ``count`` parts with equal numbers of sequences; fewer if it is
    shorter."""
    length = whole.end - whole.start
    count = max(1, min(count, length))
    edges = [whole.start + length * number // count for number in range(count + 1)]
    return [
        QueueRange(
            whole.channel,
            whole.queue,
            whole.incarnation,
            edges[number],
            edges[number + 1],
            whole.bytes // count,
        )
        for number in range(count)
    ]


def _split(
    link: BrokerLink, ranges: Sequence[QueueRange], target: int, most: int | None
) -> list[QueueRange]:
    parts: list[QueueRange] = []
    for whole in ranges:
        small = whole.bytes <= target and (most is None or whole.end - whole.start <= most)
        parts += [whole] if small else _ask(link, whole, target, most)
    return parts


def _ask(link: BrokerLink, whole: QueueRange, target: int, most: int | None) -> list[QueueRange]:
    """Divide a range by the broker's index, or evenly if the broker does not support that."""
    found = ask_parts(link, whole, target, most)
    if found is None:
        length = whole.end - whole.start
        count = max(-(-whole.bytes // target), -(-length // most) if most else 1)
        return split_evenly(whole, count)
    parts: list[QueueRange] = []
    start = whole.start
    for number, (_, last, size) in enumerate(found):
        # Gaps belong to parts, too, so that there is nothing between two parts.
        end = whole.end if number == len(found) - 1 else last + 1
        parts.append(QueueRange(whole.channel, whole.queue, whole.incarnation, start, end, size))
        start = end
    return parts or [whole]


def bytes_up_to(link: BrokerLink, whole: QueueRange, most_bytes: int) -> tuple[int, int]:
    """Find the part of a range that fits into ``most_bytes``; return its end (exclusive) and its
    bytes.  It has at least one message, however large."""
    found = ask_parts(link, whole, most_bytes, None)
    if not found:
        length = whole.end - whole.start
        if whole.bytes <= most_bytes:
            return whole.end, whole.bytes
        count = max(1, length * most_bytes // whole.bytes)
        return whole.start + count, whole.bytes * count // length
    end = whole.end if len(found) == 1 else found[0][1] + 1
    return end, found[0][2]
