"""The cases for servers, one module for each group."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance.cases import Case
from tmqp.testing.conformance.servers import (
    ack,
    channel,
    chop,
    direct,
    discipline,
    durability,
    error,
    event,
    extension,
    frame,
    hello,
    keepalive,
    limits,
    perf,
    preamble,
    pull,
    queue,
    queue_options,
    redelivery,
    router,
    security,
)

__all__ = ["SERVER_CASES"]

#: Every case for servers, in the order of the groups.
SERVER_CASES: Final[tuple[Case, ...]] = (
    *preamble.CASES,
    *hello.CASES,
    *frame.CASES,
    *chop.CASES,
    *keepalive.CASES,
    *channel.CASES,
    *queue.CASES,
    *queue_options.CASES,
    *discipline.CASES,
    *ack.CASES,
    *redelivery.CASES,
    *pull.CASES,
    *direct.CASES,
    *router.CASES,
    *event.CASES,
    *error.CASES,
    *limits.CASES,
    *durability.CASES,
    *security.CASES,
    *extension.CASES,
    *perf.CASES,
)
