"""Requests the parts into which a range can be divided; the broker answers from its index.

Parts end at the broker's own blocks, as far as possible.  The broker sends a whole block as it is
on disk; a block that is cut must be decoded and encoded again, message by message.
"""

from __future__ import annotations

from typing import Protocol

from tmqp import HeaderName, ResultCode
from tmqp.extensions import (
    HEADER_FROM,
    HEADER_INCARNATION,
    HEADER_LIMIT,
    HEADER_MAX_BYTES,
    HEADER_TO,
    OP_SPLIT_RANGE,
)
from tmqp_spark.catalog import answer_list
from tmqp_spark.errors import BrokerRefused
from tmqp_spark.transport import BrokerLink

__all__ = ["WantedRange", "ask_parts"]


class WantedRange(Protocol):
    """A range: sequences ``start`` up to, not including, ``end`` of a queue."""

    channel: str
    queue: int
    incarnation: str
    start: int
    end: int


def ask_parts(
    link: BrokerLink, whole: WantedRange, target: int, most: int | None
) -> list[tuple[int, int, int]] | None:
    """Return first sequence, last sequence and bytes of each part; None if the broker does not know
    the operation, or no longer keeps the range (reading it will report that).

    :param target: the most bytes of a part.
    :param most: the most messages of a part; None for no limit.
    :raises BrokerRefused: if the token lacks the right.
    :raises BrokerUnreachable: as the link does.
    """
    headers = [
        (HeaderName.QUEUE_ID.value, str(whole.queue)),
        (HEADER_TO, str(whole.end - 1)),
        (HEADER_MAX_BYTES, str(target)),
        (HEADER_INCARNATION, whole.incarnation),
    ]
    if most is not None:
        headers.append((HEADER_LIMIT, str(most)))
    found: list[tuple[int, int, int]] = []
    start = whole.start
    while start < whole.end:
        asked = [*headers, (HEADER_FROM, str(start))]
        try:
            answer = link.ask(OP_SPLIT_RANGE, f"split {whole!r}", whole.channel, asked)
        except BrokerRefused as error:
            if error.code in (int(ResultCode.UNAUTHORIZED), int(ResultCode.FAILED)):
                raise
            return None
        parts = answer_list(link, answer)
        if not parts:
            break
        # There may be more than the broker puts into one answer.
        for part in parts:
            found.append((int(part["First"]), int(part["Last"]), int(part.get("Bytes", 0))))
        start = found[-1][1] + 1
    return found
