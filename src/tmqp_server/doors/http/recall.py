"""The interface of the code that keeps events for clients that resume a stream."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp_server.engine.effects import Inform

__all__ = ["EventRecall"]


class EventRecall:
    """Keeps nothing; a door that keeps events has another one."""

    def number(self, effect: Inform, data: bytes) -> bytes:
        """An event has happened; returns what is sent."""
        return data

    def followed(self, kinds: Sequence[int], channel: str, queue_id: int | None) -> None:
        """Somebody follows these events."""

    def missed(
        self, last: str, kinds: Sequence[int], channel: str, queue_id: int | None
    ) -> tuple[bool, list[bytes]]:
        """Whether what came behind an id is known whole, and what is known of it."""
        return False, []
