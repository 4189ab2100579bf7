"""The cases for clients, one module for each subject."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance.cases import Case
from tmqp.testing.conformance.clients import answers, handshake, queues, stream

__all__ = ["CLIENT_CASES"]

#: Every case for clients, in the order of the groups.
CLIENT_CASES: Final[tuple[Case, ...]] = (
    *handshake.CASES,
    *stream.CASES,
    *queues.CASES,
    *answers.CASES,
)
