"""A batch of pushes in progress: counts, failures, and waiting for room."""

from __future__ import annotations

from typing import Final

import anyio

from tmqp_client._core.pending import Pending
from tmqp_client._report import BatchFailure, BatchReport

__all__ = ["Pushes"]

#: The failures that a report lists; further ones are only counted.
_MAX_FAILURES: Final = 1_000


class Pushes:
    """The pushes of one batch that wait for their acknowledgements."""

    __slots__ = (
        "_dropped",
        "_failed",
        "_failures",
        "_limit",
        "_most",
        "_most_sends",
        "_resent",
        "_sent",
        "_under_way",
        "_wake",
    )

    def __init__(self, in_flight: int) -> None:
        self._limit = in_flight
        self._most = 0
        self._sent = 0
        self._failed = 0
        self._resent = 0
        self._dropped = 0
        self._most_sends = 1
        self._failures: list[BatchFailure] = []
        self._under_way: dict[Pending, int] = {}
        self._wake: anyio.Event | None = None

    def add(self, pending: Pending) -> None:
        """Note a push that was sent."""
        self._sent += 1
        if not pending.done:
            self._under_way[pending] = self._sent - 1
        elif pending.error is not None:
            self._note(self._sent - 1, pending)

    def settled(self, pending: Pending) -> None:
        """Note that a push was confirmed or has failed."""
        index = self._under_way.pop(pending, -1)
        if pending.attempts > 1:
            self._resent += 1
            self._most_sends = max(self._most_sends, pending.attempts)
        if pending.error is not None and index >= 0:
            self._note(index, pending)
        if self._wake is not None and len(self._under_way) <= self._most:
            self._wake.set()
            self._wake = None

    def posted(self, message_id: str) -> None:
        """Note a push that awaits no answer; an empty id means that it was dropped."""
        if message_id:
            self._sent += 1
        else:
            self._dropped += 1

    def _note(self, index: int, pending: Pending) -> None:
        assert pending.error is not None, "only failures are noted"
        self._failed += 1
        if len(self._failures) < _MAX_FAILURES:
            self._failures.append(BatchFailure(index, pending.message_id, pending.error))

    @property
    def full(self) -> bool:
        """Whether as many pushes are in flight as allowed."""
        return len(self._under_way) >= self._limit

    async def room(self) -> None:
        """Wait until one more push may be in flight."""
        await self._until(self._limit - 1)

    async def all_settled(self) -> None:
        """Wait until no push is in flight."""
        await self._until(0)

    async def _until(self, most: int) -> None:
        while len(self._under_way) > most:
            self._most = most
            self._wake = anyio.Event()
            await self._wake.wait()

    def under_way(self) -> list[Pending]:
        """The pushes that wait for their acknowledgements."""
        return list(self._under_way)

    def report(self, *, confirm: bool) -> BatchReport:
        """Report what has happened so far."""
        confirmed = self._sent - self._failed - len(self._under_way) if confirm else 0
        failures = tuple(sorted(self._failures, key=lambda failure: failure.index))
        return BatchReport(
            self._sent,
            confirmed,
            self._failed,
            failures,
            self._resent,
            self._most_sends,
            self._dropped,
        )
