"""The body about transactions (an extension)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tmqp.models._kinds import UINT63
from tmqp.models._model import MAX_LIST_BYTES, Model, integer, text

__all__ = ["TransactionInformation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionInformation(Model):
    """A transaction, or a committed epoch; answer of 731 to 733, and item of the answer of 735.

    ``state`` is ``open``, ``committing``, ``broken`` (a push into it was refused) or ``committed``;
    a committed epoch has no number (``id`` is 0).  ``count`` and ``bytes`` are those of the staged
    or committed messages.  ``time_ms`` is when it will be aborted, or when it was committed, in
    milliseconds of Unix time.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    id: int = field(metadata=integer("Id", UINT63))
    application: str = field(metadata=text("Application"))
    epoch: int = field(metadata=integer("Epoch", UINT63))
    part: int | None = field(default=None, metadata=integer("Part", UINT63))
    attempt: int = field(default=0, metadata=integer("Attempt", UINT63))
    state: str = field(metadata=text("State"))
    count: int = field(default=0, metadata=integer("Count", UINT63))
    bytes: int = field(default=0, metadata=integer("Bytes", UINT63))
    time_ms: int = field(default=0, metadata=integer("Time", UINT63))
