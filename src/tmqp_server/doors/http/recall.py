"""The interface of the code that keeps events for clients that resume a stream."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp_server.engine.effects import Inform

__all__ = ["EventRecall"]


class EventRecall:
    """Keeps no events; a door that keeps them has a subclass."""

    def number(self, effect: Inform, data: bytes) -> bytes:
        """Note an event; returns the bytes to send, which may have its id."""
        return data

    def followed(self, kinds: Sequence[int], channel: str, queue_id: int | None) -> None:
        """Note that a client follows these events."""

    def missed(
        self, last: str, kinds: Sequence[int], channel: str, queue_id: int | None
    ) -> tuple[bool, list[bytes]]:
        """The events after the one with the id *last*: whether all of them are known, and those
        that are."""
        return False, []
