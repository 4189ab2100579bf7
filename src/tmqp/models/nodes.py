"""Owns the body by which one node tells another what a queue decided (F63)."""

from __future__ import annotations

from dataclasses import dataclass, field

from tmqp.models._model import UINT16, Model, flag, integer, text

__all__ = ["NodeDecision"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecision(Model):
    """A queue of another node is done with a message; the body of 641.

    ``acknowledged`` says whether its consumer accepted it.
    """

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    message_id: str = field(metadata=text("MessageId"))
    acknowledged: bool = field(default=True, metadata=flag("Acknowledged"))
