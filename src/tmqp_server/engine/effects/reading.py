"""The effects for reading kept messages, and for saving the positions of readers.

Cursors are saved like the topology, with a ticket.  A question is answered in order with the
writes: it sees everything that was appended before it.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp.blocks import AS_BLOCKS
from tmqp_server.engine.effects.base import Effect
from tmqp_server.engine.effects.storage import StoredChange

__all__ = [
    "FindOffsets",
    "ForgetCursors",
    "MeasureStored",
    "ReadStored",
    "SplitStored",
    "StoreCursors",
]


class StoreCursors(StoredChange):
    """Save a reader's positions: it has processed everything up to ``sequences`` of these queues,
    or begins after them.

    All of them are stored in one batch.
    """

    __slots__ = ("keys", "cursor", "sequences")

    def __init__(self, keys: list[int], cursor: str, sequences: list[int]) -> None:
        super().__init__()
        self.keys = keys
        self.cursor = cursor
        self.sequences = sequences


class ForgetCursors(StoredChange):
    """Remove a reader's positions in these queues."""

    __slots__ = ("keys", "cursor")

    def __init__(self, keys: list[int], cursor: str) -> None:
        super().__init__()
        self.keys = keys
        self.cursor = cursor


@mypyc_attr(acyclic=True)
class FindOffsets(Effect):
    """Find what is kept of these queues; answered by ``OffsetsFound``.

    Unless ``timestamp_us`` (Unix time) is negative, also find what arrived then or later.
    """

    __slots__ = ("number", "keys", "timestamp_us")

    def __init__(self, number: int, keys: list[int], timestamp_us: int = -1) -> None:
        self.number = number
        self.keys = keys
        self.timestamp_us = timestamp_us


@mypyc_attr(acyclic=True)
class ReadStored(Effect):
    """Read the kept messages of a queue from ``first`` (0 for the earliest) to ``last``.

    Up to ``limit`` messages and about ``max_bytes`` of them; in the ``form`` of ``tmqp.blocks``
    (``AS_BLOCKS``).  ``end`` is the last sequence that the queue has used.  Answered by
    ``RangeRead``: 416 if ``first`` is greater than ``end`` + 1, or before everything that is kept;
    not the latter if it is ``held``: a cursor keeps everything from there on, so missing messages
    never existed.
    """

    __slots__ = (
        "number",
        "key",
        "first",
        "last",
        "limit",
        "max_bytes",
        "end",
        "held",
        "form",
    )

    def __init__(
        self,
        number: int,
        key: int,
        first: int,
        last: int,
        limit: int,
        max_bytes: int,
        end: int,
        held: bool,
        form: int = AS_BLOCKS,
    ) -> None:
        self.number = number
        self.key = key
        self.first = first
        self.last = last
        self.limit = limit
        self.max_bytes = max_bytes
        self.end = end
        self.held = held
        self.form = form


@mypyc_attr(acyclic=True)
class SplitStored(Effect):
    """Divide the kept messages of a queue from ``first`` to ``last`` into at most ``most_parts``
    parts.

    Each part has at most ``limit`` messages and ``max_bytes``, 0 for no limit.  Answered by
    ``RangeSplit``; ``end``, ``held`` and 416 as in :class:`ReadStored`.
    """

    __slots__ = (
        "number",
        "key",
        "first",
        "last",
        "limit",
        "max_bytes",
        "most_parts",
        "end",
        "held",
    )

    def __init__(
        self,
        number: int,
        key: int,
        first: int,
        last: int,
        limit: int,
        max_bytes: int,
        most_parts: int,
        end: int,
        held: bool,
    ) -> None:
        self.number = number
        self.key = key
        self.first = first
        self.last = last
        self.limit = limit
        self.max_bytes = max_bytes
        self.most_parts = most_parts
        self.end = end
        self.held = held


@mypyc_attr(acyclic=True)
class MeasureStored(Effect):
    """Measure how much is kept after a sequence of each of some queues; answered by
    ``StoredMeasured``."""

    __slots__ = ("number", "keys", "after")

    def __init__(self, number: int, keys: list[int], after: list[int]) -> None:
        self.number = number
        self.keys = keys
        self.after = after
