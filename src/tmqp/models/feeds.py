"""The body about feeds of queues (an extension)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tmqp.models._kinds import UINT16, UINT63
from tmqp.models._model import MAX_LIST_BYTES, Model, integer, text

__all__ = ["FeedInformation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedInformation(Model):
    """A feed, by which one queue copies messages into another; item of the answer of 748.

    The counters begin when the server starts: it ``copied`` messages, its filter did not accept the
    ``passed`` ones, and the target had no room for the ``skipped`` ones.  ``waiting`` is the number
    of messages that wait in the source.  Without a filter, ``language`` and ``filter`` are empty.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    target: str = field(metadata=text("Target"))
    target_queue: int = field(metadata=integer("TargetQueue", UINT16))
    language: str = field(default="", metadata=text("FilterLanguage"))
    filter: str = field(default="", metadata=text("Filter"))
    copied: int = field(default=0, metadata=integer("Copied", UINT63))
    passed: int = field(default=0, metadata=integer("Passed", UINT63))
    skipped: int = field(default=0, metadata=integer("Skipped", UINT63))
    waiting: int = field(default=0, metadata=integer("Waiting", UINT63))
